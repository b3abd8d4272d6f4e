package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/api/eth"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"golang.org/x/sync/errgroup"
)

// Serve answers questions about every network in the data directory, or every
// one that the configuration names, until ctx is done.
func Serve(ctx context.Context, config Config) error {
	s, err := openService(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx), s.close())
}

// service is an open data directory and what serves it.
type service struct {
	config   Config
	keys     *account.Keyring
	stores   []kv.Store
	networks []*network
	control  *control.Server
	server   *gateway.Server
}

// openService opens the data directory and the listeners. The service must be
// stopped or run, and then closed.
func openService(ctx context.Context, config Config) (*service, error) {
	s := &service{config: config}
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
	keys, store, err := data.openKeyring(ctx)
	if err != nil {
		return err
	}
	s.keys, s.stores = keys, append(s.stores, store)
	for _, name := range names {
		n, err := openNetwork(ctx, data, name, pebble.Options{CacheBytes: int64(s.config.Cache) / int64(len(names))})
		if _, wanted := s.config.Networks[name]; errors.Is(err, errNoBlocks) && !wanted {
			slog.Warn("network left out", "network", name, "because", errNoBlocks)
			continue
		}
		if err != nil {
			return err
		}
		s.networks, s.stores = append(s.networks, n), append(s.stores, n.store)
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

func (s *service) listen(ctx context.Context) error {
	config := gateway.Config{
		Keys: s.keys,
		RPC: jsonrpc.Config{
			BatchCalls: s.config.Limits.BatchCalls, BatchBytes: int(s.config.Limits.BatchBytes), Log: slog.Default(),
		},
		Limits:  gateway.Limits{BodyBytes: int(s.config.Limits.Body), RequestTime: s.config.Limits.Time},
		Origins: s.config.Origins, Log: slog.Default(),
	}
	for _, n := range s.networks {
		config.Networks = append(config.Networks, gateway.Network{
			Name: n.name, Hosts: s.config.Networks[n.name].Hosts,
			Methods: eth.New(n.chain, eth.Config{ClientVersion: ClientVersion()}).Methods(),
		})
	}
	handler, err := gateway.New(config)
	if err != nil {
		return err
	}
	if s.control, err = control.Listen(s.config.Data, s.keys, s.status); err != nil {
		return err
	}
	if s.server, err = gateway.Listen(ctx, s.config.Listen, handler, 0); err != nil {
		return errors.Join(err, s.control.Run(ended(ctx)))
	}
	return nil
}

// ended is a context that is done: running a server with it closes what it holds.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// run serves until ctx is done. also are further things that live as long.
func (s *service) run(ctx context.Context, also ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.server.Run(ctx) })
	group.Go(func() error { return s.control.Run(ctx) })
	if s.config.Debug != "" {
		group.Go(func() error { return serveDebug(ctx, s.config.Debug) })
	}
	for _, run := range also {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// stop closes the listeners of a service that was not run.
func (s *service) stop(ctx context.Context) error {
	return errors.Join(s.server.Close(), s.control.Run(ended(ctx)))
}

func (s *service) close() error {
	var failed []error
	for _, store := range slices.Backward(s.stores) {
		failed = append(failed, store.Close())
	}
	return errors.Join(failed...)
}
