package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"ashlar/app/config"
	"ashlar/app/store"

	"golang.org/x/sync/errgroup"
)

// errStopping means that a network was to be added to a service that is stopping.
var errStopping = errors.New("the server is stopping")

// runNetworks runs the networks, and those that are added meanwhile, until ctx is done.
func (s *Service) runNetworks(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range s.Networks() {
		group.Go(func() error { return n.run(ctx) })
	}
	close(s.begun)
	for {
		select {
		case n := <-s.added:
			group.Go(func() error { return n.run(ctx) })
		case <-ctx.Done():
			close(s.stopping)
			return group.Wait()
		}
	}
}

// AddNetwork begins to serve a network, while the others are served. Its entries of the
// configuration are read again. It waits until the service runs networks, or ctx is done: one that
// is visible to clients and does not run could not be taken out of service.
func (s *Service) AddNetwork(ctx context.Context, name string) error {
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	select {
	case <-s.stopping:
		return errStopping
	default:
	}
	if s.Network(name) != nil {
		return fmt.Errorf("network %s is served already", name)
	}
	c, err := s.configOf(name)
	if err != nil {
		return err
	}
	if _, listed := c.Networks[name]; !listed {
		if exists, err := s.stores.Exists(ctx, name); err != nil {
			return err
		} else if !exists {
			return fmt.Errorf("network %s: %w", name, store.NotFound(ctx, s.stores, name))
		}
	}
	ctx = context.WithoutCancel(ctx) // the network outlives the request
	served := s.Networks()
	left, leftOut := s.leftOut.of(name) // until the network is open
	n, err := s.openNetwork(ctx, &c, name, len(served)+1)
	if err == nil {
		err = s.serveOnly(c, append(slices.Clone(served), n))
	}
	if err != nil {
		if n == nil {
			return err
		}
		err = errors.Join(err, n.Close())
		if leftOut {
			left.Why = NewUnserved(name, err).Why
			s.leftOut.leaveOut(left)
		}
		return err
	}
	s.config.Networks = withEntries(s.config.Networks, name, c.Networks) // for Reload: they are in effect
	select {
	case s.added <- n:
		slog.Info("network added", "network", name)
		return nil
	case <-s.stopping: // the network is closed with the service
		close(n.ended) // it has not run
		return errStopping
	}
}

// errUnlisted means that the configuration lists networks, and not this one.
var errUnlisted = errors.New("not in the configuration, which lists the networks to serve: add it there first")

// configOf returns the current configuration with the entries that the file has now for one
// network. It returns errUnlisted if the file lists networks, and not this one.
func (s *Service) configOf(name string) (config.Config, error) {
	c := *s.current.Load()
	fresh := c
	if s.Load != nil {
		var err error
		if fresh, err = s.Load(); err != nil {
			return c, fmt.Errorf("read the configuration again: %w", err)
		}
	}
	if _, listed := fresh.Networks[name]; !listed && len(fresh.Networks) > 0 {
		return c, fmt.Errorf("network %s is %w", name, errUnlisted)
	}
	c.Networks = withEntries(c.Networks, name, fresh.Networks)
	return c, nil
}

// withEntries returns networks with the entries of one network replaced by those in from.
func withEntries(networks map[string]config.Network, name string, from map[string]config.Network) map[string]config.Network {
	all := make(map[string]config.Network, len(networks)+1)
	maps.Copy(all, networks)
	delete(all, name)
	if entries, listed := from[name]; listed {
		all[name] = entries
	}
	return all
}

// serveOnly makes these open networks visible to clients, and no others. s.adding must be
// held.
func (s *Service) serveOnly(c config.Config, networks []*Network) error {
	before := s.Networks()
	s.setNetworks(networks)
	g, err := s.gatewayConfig(c)
	if err == nil {
		err = s.handler.Reload(g)
	}
	if err != nil {
		s.setNetworks(before)
		return err
	}
	s.current.Store(&c)
	return nil
}

func (s *Service) setNetworks(all []*Network) {
	s.serving.Lock()
	defer s.serving.Unlock()
	s.networks = all
}
