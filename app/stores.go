package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/kv"
)

// OpenStores returns the stores that a configuration names: a data directory or a keyspace.
// If reading is set, networks in a keyspace are only read. The caller must close them.
func OpenStores(ctx context.Context, c *config.Config, reading bool) (store.Stores, error) {
	if c.Store.Cassandra.Used() {
		keyspace, err := store.Connect(ctx, c.Store.Cassandra, reading)
		if err != nil {
			return nil, err
		}
		return keyspace, nil
	}
	if c.Data == "" {
		return nil, errors.New("neither data nor store.cassandra is set (want the place of the stores)")
	}
	dir := store.Dir(c.Data)
	if err := dir.Check(); err != nil {
		return nil, err
	}
	return dir, nil
}

// leaseWait is how long a writer waits for a lease. That of a writer that was killed ends
// before.
const leaseWait = 20 * time.Second

// mostLeaseWait returns how long to wait for a lease; 0: without end. A standby waits so before it has taken
// over, unless it has others, see openHolding. Then it is the writer, and an added network must not keep the service from what waits for the addition.
func (s *Service) mostLeaseWait() time.Duration {
	select {
	case <-s.begun:
		return leaseWait
	default:
	}
	switch {
	case s.config.Role != config.Standby:
		return leaseWait
	case len(s.Networks()) == 0:
		return 0
	}
	return s.holdTime + rand.N(s.holdTime/2)
}

// leaseMissing is the error of a lease that another process has.
type leaseMissing struct {
	network string
	err     error
}

func (m *leaseMissing) Error() string { return m.err.Error() }
func (m *leaseMissing) Unwrap() error { return m.err }

// openHolding is openFirst. A standby that does not get the lease of a network, such as one that a command imports, gives up those
// that it has, which a writer or another command may want, and waits for that lease before the others. Of two standbys that want
// the leases of each other, the one that gives up first lets the other one begin.
func (s *Service) openHolding(ctx context.Context, names []string) error {
	for {
		err := s.openFirst(ctx, names)
		lacks := new(leaseMissing)
		if s.config.Role != config.Standby || !errors.As(err, &lacks) || ctx.Err() != nil {
			return err
		}
		slog.Info("giving up the leases of other networks while it waits for one", "network", lacks.network, "because", err)
		held := s.Networks()
		s.setNetworks(nil)
		for _, n := range slices.Backward(held) {
			s.metrics.forget(n.Name)
			if err := n.Close(); err != nil {
				return err
			}
		}
		names = append([]string{lacks.network}, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == lacks.network })...)
	}
}

// awaitLease opens a network, and waits while another process writes to it, see mostLeaseWait.
func (s *Service) awaitLease(ctx context.Context, name string, open func() (*Network, error)) (*Network, error) {
	if !s.config.Store.Cassandra.Used() {
		return open()
	}
	n, err := store.AwaitLease(ctx, store.NetworkStore(name), s.mostLeaseWait(), open)
	if errors.Is(err, kv.ErrInUse) {
		err = &leaseMissing{name, fmt.Errorf("%w; a second process must have the role %s or %s", err, config.Standby, config.Reader)}
	}
	return n, err
}

// errLeaseLost ends a writer: another process has taken over.
var errLeaseLost = errors.New("the lease is lost: another process writes to it")

// watchLease returns an error when the network's lease is lost.
func (n *Network) watchLease(ctx context.Context) error {
	leased, ok := n.store.(kv.Leased)
	if !ok {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-leased.Lost():
		return fmt.Errorf("network %s: %w", n.Name, errLeaseLost)
	}
}
