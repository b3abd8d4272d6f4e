package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"text/template"
	"time"

	"ashlar/account"
	"ashlar/evm/execute"
	"ashlar/evm/source/demo"
	"ashlar/kv"
	"ashlar/starknet/source/madeup"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// Demo is what `ashlar demo` is told.
type Demo struct {
	Data     string // a directory to keep the demo in; empty: a temporary one
	Listen   string
	Blocks   uint64        // made before serving
	Interval time.Duration // between further blocks; more than 0
}

// The names of the demo's networks, one of each family.
const (
	demoNetwork  = "demo"
	demoStarknet = "demo-starknet"
)

// Run makes networks of a few hundred blocks, prints how they can be asked, and
// serves them, a new block at each interval, until ctx is done.
func (d Demo) Run(ctx context.Context, out io.Writer) (err error) {
	// First of all: making the networks takes a while, in vain where the port is taken.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", d.Listen)
	if err != nil {
		return fmt.Errorf("%w; use --listen to choose another", err)
	}
	defer listener.Close() // which the service has done, if it came so far
	if d.Data == "" {
		if d.Data, err = os.MkdirTemp("", "ashlar-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.Data)) }()
	}
	shown, err := demo.New(demo.Default())
	if err != nil {
		return err
	}
	if err := d.create(ctx, shown); err != nil {
		return err
	}
	if err := d.createStarknet(ctx); err != nil {
		return err
	}
	config := DefaultConfig()
	config.Data, config.Listen = d.Data, d.Listen
	if host, _, err := net.SplitHostPort(d.Listen); err == nil && isLoopback(host) {
		config.Accounts.Registration = account.RegistrationOpen // of the machine's own users
	}
	config.Networks = map[string]NetworkConfig{
		demoNetwork: {Hosts: []string{"127.0.0.1", "localhost"}}, demoStarknet: {Family: familyStarknet},
	}
	s, err := openService(ctx, config, listener)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	miner, sequencer, err := makers(ctx, shown, s.networks)
	if err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	if err := d.introduce(ctx, out, s, shown); err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	return s.run(ctx, miner.follower.Run, miner.keepPool,
		func(ctx context.Context) error { return miner.run(ctx, d.Interval) },
		func(ctx context.Context) error { return sequencer.run(ctx, d.Interval) })
}

// makers are who makes further blocks of the networks.
func makers(ctx context.Context, shown *demo.Network, networks []*network) (m *miner, s *sequencer, err error) {
	for _, n := range networks {
		switch family := n.family.(type) {
		case *evmNetwork:
			m, err = newMiner(ctx, shown, family)
		case *starknetNetwork:
			s, err = newSequencer(family)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("network %s: %w", n.name, err)
		}
	}
	return m, s, nil
}

// create makes the network, with its past, where it is not there yet.
func (d Demo) create(ctx context.Context, shown *demo.Network) error {
	data := dataDir(d.Data)
	first, err := shown.Genesis()
	if err != nil {
		return err
	}
	if err := data.check(); err != nil {
		return err
	}
	a, store, err := data.createNetwork(ctx, demoNetwork, kv.Options{}, first)
	if err != nil {
		return err
	}
	n, err := newImport(ctx, a, store, first)
	if err != nil {
		return err
	}
	return errors.Join(d.makePast(ctx, shown, n), store.Close())
}

// makePast builds the blocks of the network's past that are not there.
func (d Demo) makePast(ctx context.Context, shown *demo.Network, n *importNetwork) error {
	head, _ := n.archive.Settled()
	if head.Number >= d.Blocks {
		return nil
	}
	traffic, err := replay(ctx, shown, head.Number, n.archive.Header)
	if err != nil {
		return err
	}
	for number := head.Number + 1; number <= d.Blocks; number++ {
		_, leftOut, err := n.importer.Build(ctx, func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
			contents, err := traffic.Next(number, baseFee)
			return attributesOf(contents, parent), contents.Transactions, err
		})
		if err != nil {
			return fmt.Errorf("demo network: %w", err)
		}
		warnOfLeftOut(number, leftOut)
	}
	return nil
}

// What the demo's account signs in with, and how many keys it may have.
const (
	demoEmail = "demo@example.org"
	demoKeys  = 10_000 // each start makes one
)

// letIn gives the demo an account that sees all pages, with a password of its own each
// time. There is none where others than the machine's own users could reach it.
func letIn(ctx context.Context, s *service) (password string, owner account.ID, err error) {
	host, _, err := net.SplitHostPort(s.server.Addr().String())
	if err != nil || !isLoopback(host) {
		return "", owner, err
	}
	var token string
	a, err := s.accounts.Find(demoEmail)
	if errors.Is(err, account.ErrNoAccount) {
		token, a, err = s.accounts.Create(ctx, account.NewAccount{
			Email: demoEmail, Role: account.RoleOperator, Limits: account.Limits{Keys: demoKeys},
		})
	} else if err == nil {
		token, _, err = s.accounts.Reset(ctx, a.ID.String())
	}
	if err != nil {
		return "", owner, err
	}
	password = rand.Text()
	_, _, err = s.accounts.SetPassword(ctx, token, password, netip.Addr{})
	return password, a.ID, err
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// introduce prints the address, a new key and lines to paste.
func (d Demo) introduce(ctx context.Context, out io.Writer, s *service, shown *demo.Network) error {
	password, owner, err := letIn(ctx, s)
	if err != nil {
		return err
	}
	issued, err := s.keys.Create(ctx, account.NewKey{Name: "demo", Owner: owner})
	if err != nil {
		return err
	}
	examples, err := shown.Examples()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.server.Addr().String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	base := "http://" + net.JoinHostPort(host, port)
	return introduction.Execute(out, map[string]any{
		"URL": base + "/v3/" + issued.APIKey, "Starknet": base + "/" + demoStarknet + "/v3/" + issued.APIKey, "Event": madeup.Selector(0), "Base": base, "Email": demoEmail, "Password": password, "Interval": d.Interval, "Examples": examples,
		"Past": d.Blocks / 3, "PastHex": hexutil.EncodeUint64(d.Blocks / 3), "LaterHex": hexutil.EncodeUint64(d.Blocks/3 + 9),
	})
}

var introduction = template.Must(template.New("").Parse(`
Ashlar serves a demo network, with a new block every {{.Interval}}. Its URL, with a key of its own:

  {{.URL}}

{{if .Password}}Its dashboard, with an account that sees all of it and a password that is new with each start:

  {{.Base}}/
  {{.Email}}
  {{.Password}}

{{end}}Paste one of these. The newest block:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}'

What an account holds of a token:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"{{.Examples.Token}}","data":"{{.Examples.BalanceOfHolder}}"},"latest"]}'

The transfers of that token in ten blocks:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"{{.Examples.Token}}","topics":["{{.Examples.TransferTopic}}"],"fromBlock":"{{.PastHex}}","toBlock":"{{.LaterHex}}"}]}'

The same balance as it was in block {{.Past}}, with its proof:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getProof","params":["{{.Examples.Token}}",["{{.Examples.HolderSlot}}"],"{{.PastHex}}"]}'

The demo's Starknet network, with events in place of logs, answers at a URL of its own. The first ten of a kind:

  curl -s {{.Starknet}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"rollup_getEvents","params":{"filter":{"from_block":{"block_number":0},"to_block":"latest","keys":[["{{.Event}}"]],"chunk_size":10}}}'

Ctrl-C stops it.

`))
