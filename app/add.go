package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ashlar/app/store"

	"golang.org/x/sync/errgroup"
)

// errStopping means that a network was to be added to a service that is stopping.
var errStopping = errors.New("the server is stopping")

// addWait is how long an added network waits for a service that runs networks.
const addWait = 5 * time.Second

// runNetworks runs the networks, and those that are added meanwhile, until ctx is done.
func (s *Service) runNetworks(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	run := func(n *Network) {
		group.Go(func() error { return n.Run(ctx) })
		group.Go(func() error { return n.watchPace(ctx) })
		group.Go(func() error { return n.watchLease(ctx) })
	}
	for _, n := range s.Networks() {
		run(n)
	}
	for {
		select {
		case n := <-s.added:
			run(n)
		case <-ctx.Done():
			return group.Wait()
		}
	}
}

// AddNetwork begins to serve a stored network, while the others are served. The service
// must be running.
func (s *Service) AddNetwork(ctx context.Context, name string) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	c, served := *s.current.Load(), s.Networks()
	if slices.ContainsFunc(served, func(n *Network) bool { return n.Name == name }) {
		return fmt.Errorf("network %s is served already", name)
	}
	if _, named := c.Networks[name]; len(c.Networks) > 0 && !named {
		return fmt.Errorf("network %s is not in the configuration, which lists the networks to serve: add it there, and restart the server", name)
	}
	if exists, err := s.stores.Exists(ctx, name); err != nil {
		return err
	} else if !exists {
		return fmt.Errorf("network %s: %w", name, store.NotFound(ctx, s.stores, name))
	}
	ctx = context.WithoutCancel(ctx) // the network outlives the request
	n, err := s.openNetwork(ctx, &c, name, len(served)+1)
	if err == nil {
		err = s.present(n)
	}
	if err != nil {
		if n != nil {
			err = errors.Join(err, n.Close())
		}
		return err
	}
	slog.Info("network added", "network", name)
	select {
	case s.added <- n:
		return nil
	case <-time.After(addWait):
		return errStopping // the network is closed with the service
	}
}

// present makes an open network visible to clients.
func (s *Service) present(n *Network) error {
	before := s.Networks()
	s.setNetworks(append(slices.Clone(before), n))
	g, err := s.gatewayConfig(*s.current.Load())
	if err == nil {
		err = s.handler.Reload(g)
	}
	if err != nil {
		s.setNetworks(before)
	}
	return err
}

func (s *Service) setNetworks(all []*Network) {
	s.serving.Lock()
	defer s.serving.Unlock()
	s.networks = all
}
