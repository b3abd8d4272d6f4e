package cassandra

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

// Options are those that only this engine has.
type Options struct {
	// Shared says that several processes write to the store at once. They must not write
	// the same rows or pointers, CompareAndSet aside. Partitions are not split.
	Shared bool
}

// Store is an open store. It implements kv.Store.
type Store struct {
	cluster  *Cluster
	name     string
	id       int
	readOnly bool
	shared   bool

	closed atomic.Bool
	clock  clock
	bytes  atomic.Int64 // of all rows that were ever written
	reads  atomic.Int64 // statements that have read

	token     int64 // of the lease; 0 if the store is shared or read-only
	lease     lease
	lostLease chan struct{} // closed when the lease is lost
	changing  sync.Mutex    // held while pointers of a leased store change
	chained   int64         // guarded by changing; the clock that the last change has set
	splits    splits
	growing   turn     // of Writes, to put rows into partitions that may grow
	adding    *newPart // guarded by growing; a part of which it is not known whether it has begun

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// Open opens a store, or makes one. Of [kv.Options], Existing, ReadOnly and Accept apply. It
// returns kv.ErrInUse if another process holds the lease.
func (c *Cluster) Open(ctx context.Context, name string, o kv.Options, own Options) (*Store, error) {
	s, err := c.openStore(ctx, name, o, own)
	if err != nil {
		return nil, fmt.Errorf("kv/cassandra: open %s in keyspace %s: %w", name, c.config.Keyspace, err)
	}
	return s, nil
}

func (c *Cluster) openStore(ctx context.Context, name string, o kv.Options, own Options) (*Store, error) {
	s := &Store{cluster: c, name: name, readOnly: o.ReadOnly, shared: own.Shared, lostLease: make(chan struct{}), growing: newTurn(), stop: func() {}}
	s.lease.renewing = newTurn()
	s.splits.init()
	id, err := c.id(ctx, name)
	exists := err == nil
	if errors.Is(err, kv.ErrNotFound) && !o.ReadOnly && !o.Existing {
		id, err = c.newID(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	s.id = id
	if exists && o.Accept != nil {
		if err := o.Accept(s); err != nil {
			return nil, err
		}
	}
	if o.ReadOnly {
		return s, nil
	}
	// The partition of the pointers begins with the token; a store without one is new.
	const begin = "UPDATE " + tablePointers + " SET fence = 0, clock = 0, bytes = 0 WHERE store = ? IF fence = null"
	if _, _, err := c.compareAndSet(ctx, c.config.readPatience, begin, s.id); err != nil {
		return nil, err
	}
	if s.shared {
		return s, nil
	}
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	if err := s.loadSplits(ctx); err != nil {
		return nil, errors.Join(err, s.release(ctx))
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.stopped.Go(func() { s.keepLease(background) })
	return s, nil
}

// begin returns an error if the store is closed or ctx done.
func (s *Store) begin(ctx context.Context) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return ctx.Err()
}

// Identity names the store among those of all keyspaces there ever were, as of its last
// rewind. What is kept elsewhere of its rows is not valid for a store with another name.
func (s *Store) Identity(ctx context.Context) (string, error) {
	keyspace, err := s.cluster.identity(ctx)
	if err != nil {
		return "", fmt.Errorf("kv/cassandra: identity of the keyspace: %w", err)
	}
	epoch, _, err := kv.Epoch(ctx, s)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%d/%d", keyspace, s.id, epoch), nil
}

// Lost implements kv.Leased.
func (s *Store) Lost() <-chan struct{} { return s.lostLease }

// Sync implements kv.Store. A quorum of replicas has each row in its commit log when Write
// returns.
func (s *Store) Sync(ctx context.Context) error { return s.begin(ctx) }

// Compact implements kv.Store. Cassandra compacts by itself.
func (s *Store) Compact(ctx context.Context, _ ...*kv.Table) error { return s.begin(ctx) }

// Stats implements kv.Store. DiskBytes are those of all rows as they were written, before
// compression and replication. They are not counted for shared stores.
func (s *Store) Stats() kv.Stats {
	if s.closed.Load() {
		return kv.Stats{}
	}
	stats := kv.Stats{DiskBytes: s.bytes.Load(), Reads: s.reads.Load()}
	if lost := s.lease.lost.Load(); lost != nil {
		stats.Refused = *lost
	}
	return stats
}

// closeTimeout bounds the release of the lease when a store is closed.
const closeTimeout = 2 * time.Second

// Close implements kv.Store. It gives up the lease. If that fails the lease ends by itself.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	s.stop()
	s.stopped.Wait()
	if s.token == 0 || s.lease.lost.Load() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.release(ctx); err != nil {
		s.cluster.log.Warn("lease not released; it ends by itself", "store", s.name, "error", err)
	}
	return nil
}
