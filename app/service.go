// Package app assembles the service: networks, accounts, gateway, dashboard and metrics.
// Package app/command implements the commands, app/config the configuration, and app/store
// the data directory.
package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/app/watch"
	"ashlar/family"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/worker"

	"golang.org/x/sync/errgroup"
)

// Service is an open data directory, or keyspace, with its listeners.
type Service struct {
	// Load reads the configuration again; nil if there is no file. It is set before Run.
	Load func() (config.Config, error)
	// Pinned are networks that the caller of Run works on itself, so they are not taken out
	// of service. It is set before Run.
	Pinned []string

	config config.Config
	stores store.Stores
	people
	serving   sync.Mutex
	networks  []*Network    // guarded by serving; replaced, never changed, once the service is open
	holdTime  time.Duration // how long a standby keeps leases at least while it waits for another one; leaseWait, or less in tests
	leftOut   unservedNetworks
	lent      loans
	known     map[string]bool // guarded by adding: names of networks whose hosts no other network may answer at
	adding    sync.Mutex      // held while a network is added or hidden, or the configuration reloaded
	added     chan *Network   // to be run
	begun     chan struct{}   // closed when the networks run that are served from the start
	stopping  chan struct{}   // closed when no further networks run
	metrics   *metrics
	current   atomic.Pointer[config.Config] // the current configuration
	handler   *gateway.Handler
	dashboard http.Handler
	control   *control.Server
	public    net.Listener // given by the caller for the public server; else nil
	server    *gateway.Server
	operator  *operator     // nil if not configured
	tracer    *watch.Tracer // nil if not configured
	workers   *worker.Pool
}

// Open opens the data directory and the listeners. public is an open public listener, or
// nil. The service must be run or stopped, and then closed.
func Open(ctx context.Context, c config.Config, public net.Listener) (*Service, error) {
	s := &Service{config: c, public: public, holdTime: leaseWait, added: make(chan *Network), begun: make(chan struct{}), stopping: make(chan struct{})}
	s.current.Store(&c)
	if public == nil {
		if err := c.CheckListeners(Families()); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Networks returns the served networks.
func (s *Service) Networks() []*Network {
	s.serving.Lock()
	defer s.serving.Unlock()
	return s.networks
}

// Network returns a served network, nil if it is not served.
func (s *Service) Network(name string) *Network {
	for _, n := range s.Networks() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// asked returns the served networks, each of which stays open while it is asked.
func (s *Service) asked() iter.Seq[*Network] {
	return func(yield func(*Network) bool) {
		for _, n := range s.Networks() {
			if !n.users.Enter() {
				continue // it is being closed
			}
			more := yield(n)
			n.users.Leave()
			if !more {
				return
			}
		}
	}
}

// Addr returns the address of the public listener.
func (s *Service) Addr() net.Addr { return s.server.Addr() }

// Accounts returns the accounts of the service.
func (s *Service) Accounts() *account.Accounts { return s.accounts }

// Keys returns the API keys of the service.
func (s *Service) Keys() *account.Keyring { return s.keys }

func (s *Service) open(ctx context.Context) error {
	data, err := OpenStores(ctx, &s.config, s.config.Role == config.Reader)
	if err != nil {
		return err
	}
	s.stores = data
	if k, ok := data.(*store.Keyspace); ok && s.config.Role == config.Reader {
		k.KeepRows(store.RowCache{Dir: s.config.Store.Cache.Dir, Bytes: int64(s.config.Store.Cache.Size)})
	}
	names, err := servedNames(ctx, &s.config, data)
	if err != nil {
		return err
	}
	s.metrics = newMetrics()
	if s.workers, err = newWorkers(); err != nil {
		return err
	}
	var node string
	if _, shared := data.(*store.Keyspace); shared {
		if node, err = nodeName(&s.config); err != nil {
			return err
		}
	}
	if s.people, err = s.awaitPeople(ctx, node); err != nil {
		return err
	}
	if err := s.openHolding(ctx, names); err != nil {
		return err
	}
	return s.listen(ctx)
}

// openNetwork opens one of so many networks and prepares it to answer. If only the latter
// fails, it returns the network too.
func (s *Service) openNetwork(ctx context.Context, c *config.Config, name string, of int) (n *Network, err error) {
	defer func() { s.leftOut.opened(name, err) }()
	n, err = s.awaitLease(ctx, name, func() (*Network, error) {
		return openServed(ctx, s.stores, name, c.Networks[name], kv.Options{CacheBytes: int64(s.config.Cache) / int64(of), ReadOnly: s.config.Role == config.Reader})
	})
	if err != nil {
		return nil, err
	}
	n.leave, n.ended = make(chan struct{}), make(chan struct{})
	err = n.serve(ctx, family.Service{
		Name: name, Data: s.config.Data, CatchUp: n.pace.Load, Workers: s.workers, Filters: s.config.Filters.Feed(),
		Version: family.Version{Release: version(), Commit: commit(), Client: ClientVersion()},
		Observe: func(methods []string) jsonrpc.Observer { return s.metrics.observer(name, methods) },
	})
	if err != nil {
		return n, fmt.Errorf("network %s: %w", name, err)
	}
	return n, nil
}

// servedNames lists the networks to serve: those in the configuration, or all.
func servedNames(ctx context.Context, c *config.Config, data store.Stores) ([]string, error) {
	if len(c.Networks) > 0 {
		return slices.Sorted(maps.Keys(c.Networks)), nil
	}
	names, err := data.List(ctx)
	if err == nil && len(names) == 0 {
		err = noNetworks(data)
	}
	return names, err
}

// listen opens all listeners, or none.
func (s *Service) listen(ctx context.Context) (err error) {
	if s.dashboard, err = s.newDashboard(); err != nil {
		return err
	}
	if t := s.config.Traces; t.Endpoint != "" {
		if s.tracer, err = watch.NewTracer(ctx, t.Endpoint, t.Share, version()); err != nil {
			return err
		}
	}
	g, err := s.gatewayConfig(s.config)
	if err != nil {
		return err
	}
	if s.handler, err = gateway.New(g); err != nil {
		return err
	}
	warnOfCredits(&s.config, g.Networks)
	if err := s.restoreSpent(ctx); err != nil {
		return err
	}
	at, err := s.listenConfig(ctx, &s.config)
	if err != nil {
		return err
	}
	at.Listener = s.public
	if s.server, err = gateway.Listen(ctx, at, s.handler); err != nil {
		return fmt.Errorf("%w (want another address: the entry listen, or --listen)", err)
	}
	if s.config.Operator != "" {
		if s.operator, err = listenOperator(ctx, s.config.Operator, s); err != nil {
			return errors.Join(err, s.server.Close())
		}
	}
	if s.control, err = s.listenControl(); err != nil {
		return errors.Join(err, s.closeListeners())
	}
	return s.metrics.registry.Register(newServiceCollector(s))
}

// listenControl opens the control socket, which is in the data directory. A server whose
// stores are elsewhere need not have one.
func (s *Service) listenControl() (*control.Server, error) {
	if s.config.Data == "" {
		return nil, nil
	}
	if err := os.MkdirAll(s.config.Data, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	service := s.people.service()
	service.Dashboard = func(context.Context) (string, error) { return s.dashboardURL(), nil }
	return control.Listen(s.config.Data, service, control.Process{Status: s.status, Checkpoint: s.checkpoint, AddNetwork: s.AddNetwork, LendNetwork: s.LendNetwork})
}

func (s *Service) runControl(ctx context.Context) error {
	if s.control == nil {
		return nil
	}
	return s.control.Run(ctx)
}

// restoreSpent passes the credits spent today before this start to the handler. Those of all
// processes of a cluster are known to the group.
func (s *Service) restoreSpent(ctx context.Context) error {
	if s.group != nil {
		return s.group.Round(ctx)
	}
	keys, err := s.keys.List(ctx)
	if err != nil {
		return err
	}
	accounts, err := s.accounts.List(ctx)
	if err != nil {
		return err
	}
	for _, a := range accounts { // disabled ones may be enabled again today
		keys = append(keys, account.Key{ID: account.KeyID(a.ID), Owner: a.ID}) // stands for calls without a key
	}
	for i := range keys { // unreadable ones too, for the quota of their account
		credits, err := s.usage.Today(ctx, keys[i].ID)
		if err != nil {
			return err
		}
		s.handler.Restore(&keys[i], credits)
	}
	return nil
}

func (s *Service) closeListeners() error {
	err := s.server.Close()
	if s.operator != nil {
		err = errors.Join(err, s.operator.listener.Close())
	}
	return err
}

// ended returns a context that is done: running a server with it closes its listener.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// ErrTerminated is the cancellation cause with which Run announces the stop to clients and
// waits for the configured time before it stops.
var ErrTerminated = errors.New("terminated")

// awaitStop waits until the service must stop: ctx is done and clients have been warned,
// or running, which something else ended, is done.
func (s *Service) awaitStop(ctx, running context.Context) {
	select {
	case <-ctx.Done():
	case <-running.Done():
		return
	}
	lameDuck := s.current.Load().LameDuck
	if !errors.Is(context.Cause(ctx), ErrTerminated) || lameDuck == 0 {
		return
	}
	s.handler.AnnounceStop()
	slog.Info("stopping soon: not ready, but still answering requests", "lame_duck", lameDuck)
	timer := time.NewTimer(lameDuck)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-running.Done():
	}
}

// Run serves until ctx is done. The functions in also run as long as the service.
func (s *Service) Run(ctx context.Context, also ...func(context.Context) error) error {
	// The last requests spend credits too, so these are written and posted after the requests.
	counting, stopCounting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCounting()
	var counters errgroup.Group
	counters.Go(func() error { return s.usage.Run(counting) })
	if s.group != nil {
		counters.Go(func() error { return s.group.Run(counting) })
	}
	discovers := s.discovers() // before the control socket answers: adding a network changes the configuration
	// All parts run until one of them fails or, some time after ctx is done, awaitStop returns.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { defer stop(); s.awaitStop(ctx, running); return nil })
	start := func(run func(context.Context) error) { group.Go(func() error { return run(running) }) }
	start(s.server.Run)
	start(s.runControl)
	start(s.sessions.Run)
	start(s.accounts.Run)
	if s.mail != nil {
		start(s.mail.Run)
	}
	if s.operator != nil {
		start(s.operator.run)
	}
	start(s.people.refresh)
	s.offerFirst()
	start(s.runNetworks)
	start(s.awaitFreed)
	if discovers {
		start(s.discover)
	}
	for _, run := range also {
		start(run)
	}
	err := group.Wait()
	if unsaved := s.accounts.Unsaved(); unsaved != nil {
		slog.Error("restrictions of accounts and keys were not stored and end with this process", "names", unsaved.Names, "error", unsaved.Why)
	}
	stopCounting()
	return errors.Join(err, counters.Wait())
}

// Stop closes the listeners of a service that was not run.
func (s *Service) Stop(ctx context.Context) error {
	return errors.Join(s.closeListeners(), s.runControl(ended(ctx)))
}

// Close closes the data directory.
func (s *Service) Close() error {
	var failed []error
	for _, n := range slices.Backward(s.Networks()) {
		failed = append(failed, n.Close())
	}
	if s.workers != nil {
		s.workers.Close()
	}
	s.claim.close()
	if s.people.store != nil {
		failed = append(failed, s.people.store.Close())
	}
	if s.tracer != nil {
		failed = append(failed, s.tracer.Close())
	}
	if s.stores != nil {
		failed = append(failed, s.stores.Close())
	}
	return errors.Join(failed...)
}
