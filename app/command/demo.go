package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"

	"ashlar/account"
	"ashlar/app"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
)

// Demo is ashlar demo.
type Demo struct {
	Data     string // a directory to keep the demo in; empty: a temporary one
	Listen   string
	Operator string        // address for metrics and profiles; empty: none
	Blocks   uint64        // created before serving
	Interval time.Duration // interval of further blocks; must be positive
}

// shown is one network of the demo.
type shown struct {
	family.Demo
	family family.Family
}

// demos returns the demo's networks, one per family that has one. The first is served at
// the listener's own hosts.
func demos() (all []shown, err error) {
	for _, f := range app.Families() {
		d, err := f.Demo()
		if err != nil {
			return nil, err
		}
		if d != nil {
			all = append(all, shown{d, f})
		}
	}
	return all, nil
}

// Run creates networks of a few hundred blocks, prints example calls, and serves the
// networks, with a new block at each interval, until ctx is done.
func (d Demo) Run(ctx context.Context, out io.Writer) (err error) {
	// Listen first: creating the networks takes a while, and is in vain if the port is
	// taken.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", d.Listen)
	if err != nil {
		return fmt.Errorf("%w; use --listen to choose another", err)
	}
	defer listener.Close() // already closed if the service was opened
	if d.Data == "" {
		if d.Data, err = os.MkdirTemp("", "ashlar-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.Data)) }()
	}
	all, err := demos()
	if err != nil {
		return err
	}
	if err := d.create(ctx, out, all); err != nil {
		return err
	}
	c := d.config(all)
	s, err := app.Open(ctx, c, listener)
	if err != nil {
		return err
	}
	warnOfServed(s, c)
	defer func() { err = errors.Join(err, s.Close()) }()
	runs, err := d.start(ctx, s, all)
	if err == nil {
		err = d.introduce(ctx, out, s, all)
	}
	if err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	return s.Run(ctx, runs...)
}

// checkOwn refuses the directory of another server: its accounts would get an operator whose password is printed.
func checkOwn(ctx context.Context, data store.Dir, all []shown) error {
	if _, err := os.Stat(string(data)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	names, err := data.List(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(n shown) bool { return n.Name() == name }) {
			return fmt.Errorf("%s has the network %s, which is none of the demo's: expected a directory of the demo's own", data, name)
		}
	}
	if len(names) == 0 && data.HasStore(store.AccountsName) { // the demo makes its networks first
		return fmt.Errorf("%s has accounts and no network of the demo: expected a directory of the demo's own", data)
	}
	return nil
}

// create creates the missing networks with their initial blocks, and writes which to out.
func (d Demo) create(ctx context.Context, out io.Writer, all []shown) error {
	data := store.Dir(d.Data)
	if err := data.Check(); err != nil {
		return err
	}
	if err := checkOwn(ctx, data, all); err != nil {
		return err
	}
	for _, n := range all {
		place, err := app.Place(ctx, data, n.family, n.Name())
		if err == nil && place.New {
			_, err = fmt.Fprintf(out, "Creating the network %s with %s ...\n", n.Name(), family.Counted(d.Blocks, "block"))
		}
		if err == nil {
			err = n.Create(ctx, place, d.Blocks)
		}
		if err != nil {
			return fmt.Errorf("network %s: %w", n.Name(), err)
		}
	}
	return nil
}

func (d Demo) config(all []shown) config.Config {
	c := config.Default()
	c.LameDuck = 0 // nobody else sends its requests
	c.Operator = d.Operator
	c.Dashboard.Status = true
	c.Data, c.Listen, c.Networks = d.Data, d.Listen, make(map[string]config.Network)
	if host, _, err := net.SplitHostPort(d.Listen); err == nil && isLoopback(host) {
		c.Accounts.Registration = account.RegistrationOpen // for users of this machine
	}
	for i, n := range all {
		network := config.Network{Family: n.family.Name()}
		if i == 0 {
			network.Hosts = []string{"127.0.0.1", "localhost"}
		}
		c.Networks[n.Name()] = network
	}
	return c
}

// start returns the functions that produce further blocks of the networks.
func (d Demo) start(ctx context.Context, s *app.Service, all []shown) (runs []func(context.Context) error, err error) {
	if out := s.Unserved(ctx); len(out) > 0 {
		return nil, errors.New(out[0].String())
	}
	for _, n := range s.Networks() {
		for _, made := range all {
			if made.Name() != n.Name {
				continue
			}
			run, err := made.Start(ctx, n.Network, d.Interval)
			if err != nil {
				return nil, fmt.Errorf("network %s: %w", n.Name, err)
			}
			s.Pinned = append(s.Pinned, n.Name)
			runs = append(runs, func(ctx context.Context) error {
				if err := run(ctx); err != nil {
					return fmt.Errorf("network %s: %w", n.Name, err)
				}
				return nil
			})
		}
	}
	return runs, nil
}

// The demo's account, and its maximum number of keys.
const (
	demoEmail = "demo@example.org"
	demoKeys  = 10_000 // each start creates one
)

// letIn creates the demo's account, an operator, with a new password. It creates none if
// the listener can be reached from other machines.
func letIn(ctx context.Context, s *app.Service) (password string, owner account.ID, err error) {
	host, _, err := net.SplitHostPort(s.Addr().String())
	if err != nil || !isLoopback(host) {
		return "", owner, err
	}
	var token string
	a, err := s.Accounts().Find(demoEmail)
	if errors.Is(err, account.ErrNoAccount) {
		token, a, err = s.Accounts().Create(ctx, account.NewAccount{
			Email: demoEmail, Role: account.RoleOperator, Limits: account.Limits{Keys: demoKeys},
		})
	} else if err == nil {
		token, _, err = s.Accounts().Reset(ctx, a.ID.String())
	}
	if err != nil {
		return "", owner, err
	}
	password = rand.Text()
	_, _, err = s.Accounts().SetPassword(ctx, token, password, netip.Addr{})
	return password, a.ID, err
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// shownBlocks returns how many blocks the examples of a network may name: one that was begun earlier can have fewer than are created
// for a new one.
func (d Demo) shownBlocks(ctx context.Context, s *app.Service, n shown) (uint64, error) {
	served := s.Network(n.Name())
	if served == nil {
		return 0, fmt.Errorf("network %s is not served", n.Name())
	}
	status, err := served.Network.Status(ctx)
	return min(status.Head, d.Blocks), err
}

// introduce prints the address, a new key and example calls.
func (d Demo) introduce(ctx context.Context, out io.Writer, s *app.Service, all []shown) error {
	password, owner, err := letIn(ctx, s)
	if err != nil {
		return err
	}
	issued, err := s.Keys().Create(ctx, account.NewKey{Name: "demo", Owner: owner})
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	base := "http://" + net.JoinHostPort(host, port)
	url := base + "/v3/" + issued.APIKey
	err = introduction.Execute(out, map[string]any{"URL": url, "WebSocket": strings.Replace(base, "http", "ws", 1) + "/ws/v3/" + issued.APIKey, "Base": base, "Email": demoEmail, "Password": password, "Interval": d.Interval})
	for i, n := range all {
		if i > 0 {
			url = base + "/" + n.Name() + "/v3/" + issued.APIKey
		}
		var blocks uint64
		if err == nil {
			blocks, err = d.shownBlocks(ctx, s, n)
		}
		if err == nil {
			err = n.Introduce(out, url, blocks)
		}
	}
	if err == nil {
		_, err = fmt.Fprint(out, "Press Ctrl-C to stop.\n\n")
	}
	return err
}

var introduction = template.Must(template.New("").Parse(`
Ashlar serves a demo network, with a new block every {{.Interval}}. Its URLs, with a new API key:

  {{.URL}}
  {{.WebSocket}}

{{if .Password}}The dashboard, with an account that sees all of it and a new password for each start:

  {{.Base}}/
  {{.Email}}
  {{.Password}}

{{end}}`))
