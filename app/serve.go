package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"

	"ashlar/account/control"
	"ashlar/evm/source/engine"
	"ashlar/gateway"
	"ashlar/kv"

	"golang.org/x/sync/errgroup"
)

// Serve answers questions about every network in the data directory, or every
// one that the configuration names, until ctx is done. Whenever something comes from
// again, the configuration is loaded anew; a wrong one is logged, and changes nothing.
func Serve(ctx context.Context, load func() (Config, error), again <-chan os.Signal) error {
	config, err := load()
	if err != nil {
		return err
	}
	s, err := openService(ctx, config, nil)
	if err != nil {
		return err
	}
	err = s.run(ctx, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-again:
			}
			config, err := load()
			if err == nil {
				err = s.reload(config)
			}
			if err != nil {
				slog.Error("the configuration stays as it was", "error", err)
			}
		}
	})
	return errors.Join(err, s.close())
}

// service is an open data directory and what serves it.
type service struct {
	config Config
	people
	stores    []kv.Store
	networks  []*network
	metrics   *metrics
	current   atomic.Pointer[Config] // as it was loaded last
	handler   *gateway.Handler
	dashboard http.Handler
	control   *control.Server
	public    net.Listener // the server's, where it was opened before; else nil
	server    *gateway.Server
	operator  *operator // nil where there is none
	engines   []*engine.Server
}

// openService opens the data directory and the listeners, but for the public one where
// that is given. The service must be stopped or run, and then closed.
func openService(ctx context.Context, config Config, public net.Listener) (*service, error) {
	s := &service{config: config, public: public}
	s.current.Store(&config)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *service) open(ctx context.Context) error {
	data := dataDir(s.config.Data)
	names, err := s.config.served(data)
	if err != nil {
		return err
	}
	if s.people, err = data.openAccounts(ctx, s.config.Accounts); err != nil {
		return err
	}
	s.stores = append(s.stores, s.people.store)
	for _, name := range names {
		config, wanted := s.config.Networks[name]
		n, err := openServed(ctx, data, name, config, kv.Options{CacheBytes: int64(s.config.Cache) / int64(len(names))})
		if errors.Is(err, errNoBlocks) && !wanted {
			slog.Warn("network left out", "network", name, "because", errNoBlocks)
			continue
		}
		if err != nil {
			return err
		}
		s.networks, s.stores = append(s.networks, n), append(s.stores, n.store)
		if err := n.describeMethods(s.config); err != nil {
			return fmt.Errorf("network %s: %w", name, err)
		}
		if len(config.Source) > 0 || config.Engine.Listen != "" {
			if err := n.follow(name, config); err != nil {
				return err
			}
		}
	}
	if len(s.networks) == 0 {
		return nothingToServe(data)
	}
	return s.listen(ctx)
}

// served lists the networks to serve.
func (c Config) served(data dataDir) ([]string, error) {
	if len(c.Networks) > 0 {
		var names []string
		for name := range c.Networks {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, nil
	}
	names, err := data.networkNames()
	if err == nil && len(names) == 0 {
		err = nothingToServe(data)
	}
	return names, err
}

func nothingToServe(data dataDir) error {
	return fmt.Errorf("%s holds no network: bring one in with `ashlar import`, or try `ashlar demo`", data)
}

// listen opens every listener, or none.
func (s *service) listen(ctx context.Context) (err error) {
	s.metrics = newMetrics()
	if s.dashboard, err = s.newDashboard(); err != nil {
		return err
	}
	g, err := s.gatewayConfig(s.config)
	if err != nil {
		return err
	}
	if s.handler, err = gateway.New(g); err != nil {
		return err
	}
	s.config.warnOfCredits(g.Networks)
	if err := s.restoreSpent(ctx); err != nil {
		return err
	}
	at, err := s.config.listenConfig(ctx)
	if err != nil {
		return err
	}
	at.Listener = s.public
	if s.server, err = gateway.Listen(ctx, at, s.handler); err != nil {
		return err
	}
	if s.config.Operator != "" {
		if s.operator, err = listenOperator(ctx, s.config.Operator, s); err != nil {
			return errors.Join(err, s.server.Close())
		}
	}
	if err := s.listenEngines(ctx); err != nil {
		return errors.Join(err, s.closeListeners())
	}
	if s.control, err = control.Listen(s.config.Data, s.people.service(), s.status); err != nil {
		return errors.Join(err, s.closeListeners())
	}
	return s.metrics.registry.Register(newServiceCollector(s))
}

// restoreSpent tells the handler what was spent today before this process was started.
func (s *service) restoreSpent(ctx context.Context) error {
	keys, err := s.keys.List(ctx)
	if err != nil {
		return err
	}
	accounts, err := s.accounts.List(ctx)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if k, err := s.keys.Session(a.ID); err == nil { // a disabled one spends nothing
			keys = append(keys, *k)
		}
	}
	for i := range keys {
		credits, err := s.usage.Today(ctx, keys[i].ID)
		if err != nil {
			return err
		}
		s.handler.Restore(&keys[i], credits)
	}
	return nil
}

func (s *service) closeListeners() error {
	err := s.server.Close()
	if s.operator != nil {
		err = errors.Join(err, s.operator.listener.Close())
	}
	return errors.Join(err, s.closeEngines())
}

// ended is a context that is done: running a server with it closes what it holds.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// run serves until ctx is done. also are further things that live as long.
func (s *service) run(ctx context.Context, also ...func(context.Context) error) error {
	// What is counted while the last requests are answered is written after them.
	counting, stopCounting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCounting()
	counted := make(chan error, 1)
	go func() { counted <- s.usage.Run(counting) }()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.server.Run(ctx) })
	group.Go(func() error { return s.control.Run(ctx) })
	group.Go(func() error { return s.sessions.Run(ctx) })
	if s.operator != nil {
		group.Go(func() error { return s.operator.run(ctx) })
	}
	for _, server := range s.engines {
		group.Go(func() error { return server.Run(ctx) })
	}
	for _, n := range s.networks {
		group.Go(func() error { return n.run(ctx) })
	}
	for _, run := range also {
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	stopCounting()
	return errors.Join(err, <-counted)
}

// stop closes the listeners of a service that was not run.
func (s *service) stop(ctx context.Context) error {
	return errors.Join(s.closeListeners(), s.control.Run(ended(ctx)))
}

func (s *service) close() error {
	var failed []error
	for _, store := range slices.Backward(s.stores) {
		failed = append(failed, store.Close())
	}
	return errors.Join(failed...)
}
