package app

import (
	"context"
	"errors"
	"fmt"
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
	return store.Dir(c.Data), nil
}

// leaseWait is how long a writer waits for a lease. That of a writer that was killed ends
// before.
const leaseWait = 20 * time.Second

// mostLeaseWait returns how long to wait for a lease; 0: without end. A standby waits so before it has taken
// over. Then it is the writer, and an added network must not keep the service from what waits for the addition.
func (s *Service) mostLeaseWait() time.Duration {
	select {
	case <-s.begun:
		return leaseWait
	default:
	}
	if s.config.Role == config.Standby {
		return 0
	}
	return leaseWait
}

// awaitLease opens a network, and waits while another process writes to it, see mostLeaseWait.
func (s *Service) awaitLease(ctx context.Context, name string, open func() (*Network, error)) (*Network, error) {
	if !s.config.Store.Cassandra.Used() {
		return open()
	}
	n, err := store.AwaitLease(ctx, store.NetworkStore(name), s.mostLeaseWait(), open)
	if errors.Is(err, kv.ErrInUse) {
		err = fmt.Errorf("%w; a second process must have the role %s or %s", err, config.Standby, config.Reader)
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
