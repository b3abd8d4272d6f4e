package cassandra

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// A lease is the right to write a store. It is in static columns of the store's partition
// of pointers:
//
//	holder   who has it; Cassandra removes this column when it was not renewed in time
//	token    how many leases there have been, 0 for a store that has no lease
//	clock    the holder uses no timestamp of rows beyond this one before it renews;
//	         greater with each change
//
// The condition of every change of a pointer is the token. So time decides only who may
// try: a process that was paused beyond its time and has not noticed has an old token.
//
// The clock makes timestamps grow from one holder to the next although their machines'
// clocks differ. Otherwise a row could be hidden by an earlier removal of its partition.
type lease struct {
	holder   string
	renewed  atomic.Int64 // when the last successful renewal began, nanoseconds since began
	began    time.Time
	renewing turn                  // of writes, to renew the lease
	lost     atomic.Pointer[error] // why the store takes no more writes
}

// renewals in the time of a lease.
const renewals = 4

// acquire takes the lease of a store, or returns kv.ErrInUse.
func (s *Store) acquire(ctx context.Context) error {
	c := s.cluster
	s.lease.holder = newHolder()
	s.lease.began = time.Now()
	read := c.session.Query("SELECT fence, holder, clock, bytes FROM "+tablePointers+" WHERE store = ? LIMIT 1", s.id).Consistency(c.serial)
	var holder *string
	var token, clock, bytes int64
	if err := c.scan(ctx, read, &token, &holder, &clock, &bytes); err != nil {
		return err
	}
	if holder != nil {
		return fmt.Errorf("%w: %s writes to it", kv.ErrInUse, *holder)
	}
	s.token = token + 1
	s.clock.atLeast(clock)
	s.bytes.Store(bytes)
	const take = "UPDATE " + tablePointers + " USING TTL ? SET holder = ? WHERE store = ? IF fence = ? AND holder = null"
	const count = "UPDATE " + tablePointers + " SET fence = ?, clock = ? WHERE store = ?"
	begun := s.lease.since()
	s.chained = s.promise()
	applied, now, err := s.conditionally(ctx, s.cluster.config.readPatience, func(b *gocql.Batch) {
		b.Query(take, c.leaseSeconds(), s.lease.holder, s.id, token)
		b.Query(count, s.token, s.chained, s.id)
	})
	if err != nil {
		return err
	}
	if !applied && now["holder"] != s.lease.holder { // else an attempt without an answer succeeded
		return fmt.Errorf("%w: %v writes to it", kv.ErrInUse, now["holder"])
	}
	s.lease.renewed.Store(begun)
	s.promised(s.chained)
	return nil
}

// newHolder returns a name for one holder of a lease: where it runs, and a random part.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s (%s)", os.Getpid(), host, gocql.MustRandomUUID().String()[:8])
}

func (c *Cluster) leaseSeconds() int { return int(c.config.Lease / time.Second) }

func (l *lease) since() int64 { return int64(time.Since(l.began)) }

// promise returns the timestamp that the store does not exceed before the next renewal.
func (s *Store) promise() int64 { return s.clock.now() + s.cluster.config.Lease.Microseconds() }

// promised records the clock that a change has set. If the machine's time is set forward before
// the next renewal, timestamps follow it through half of the lease only, and grow one at a time
// through the rest: there are far fewer rows than microseconds.
func (s *Store) promised(clock int64) {
	s.chained = clock
	s.clock.atMost(clock - s.cluster.config.Lease.Microseconds()/2)
}

// conditionally runs a batch of statements on the store's pointers, one of which has a
// condition. The batch must recognize its own earlier, successful attempt.
func (s *Store) conditionally(ctx context.Context, patience time.Duration, add func(*gocql.Batch)) (applied bool, now map[string]any, err error) {
	err = s.cluster.retry(ctx, patience, func(ctx context.Context) (err error) {
		b := s.cluster.session.Batch(gocql.UnloggedBatch).RetryPolicy(nil).SpeculativeExecutionPolicy(s.cluster.contention)
		add(b)
		for i := range b.Entries {
			b.Entries[i].Idempotent = true
		}
		now = map[string]any{}
		var rows *gocql.Iter
		applied, rows, err = b.MapExecCASContext(ctx, now)
		if rows != nil {
			err = errors.Join(err, rows.Close())
		}
		return err
	})
	return applied, now, err
}

// change changes pointers, and renews the lease with them. check, if not nil, is called
// before each attempt; it may read pointers, and its error ends the change.
//
// Changes form a chain: each is conditional on the clock that the one before it has set, and
// sets a greater one. So an attempt that was given up, and that a node makes after all when
// it wakes up, cannot undo a later change. If an attempt is repeated because its answer was
// lost, the clock says whether it was successful.
func (s *Store) change(ctx context.Context, patience time.Duration, check func(context.Context) error, add func(*gocql.Batch)) error {
	const keep = "UPDATE " + tablePointers + " USING TTL ? SET holder = ? WHERE store = ? IF fence = ? AND clock = ?"
	const count = "UPDATE " + tablePointers + " SET clock = ?, bytes = ? WHERE store = ?"
	s.changing.Lock()
	defer s.changing.Unlock()
	begun := s.lease.since()
	next := max(s.promise(), s.chained+1)
	return s.cluster.retry(ctx, patience, func(ctx context.Context) error {
		for {
			if check != nil {
				if err := check(ctx); err != nil {
					return err
				}
			}
			applied, now, err := s.conditionally(ctx, 0, func(b *gocql.Batch) {
				b.Query(keep, s.cluster.leaseSeconds(), s.lease.holder, s.id, s.token, s.chained)
				b.Query(count, next, s.bytes.Load(), s.id)
				if add != nil {
					add(b)
				}
			})
			if err != nil {
				return err
			}
			clock, _ := now["clock"].(int64)
			switch fence, _ := now["fence"].(int64); {
			case applied, fence == s.token && clock == next:
				s.promised(next)
				s.lease.renewed.Store(begun)
				return nil
			case fence != s.token:
				return s.loseLease(now)
			}
			s.chained = clock // an attempt of an earlier change, which was given up
			next = max(next, clock+1)
		}
	})
}

// renew renews the lease, or records that it is lost.
func (s *Store) renew(ctx context.Context) error {
	return s.change(ctx, s.cluster.config.Lease/2, nil, nil)
}

// loseLease ends the writing for good.
func (s *Store) loseLease(now map[string]any) error {
	err := fmt.Errorf("another process has taken over (token %v, here %d): %w", now["fence"], s.token, kv.ErrFailed)
	if s.lease.lost.CompareAndSwap(nil, &err) {
		s.cluster.log.Error("lease lost; reads go on, writes are refused until the process is started again", "store", s.name, "error", err)
		close(s.lostLease)
	}
	return *s.lease.lost.Load()
}

// keepLease renews the lease until ctx is done.
func (s *Store) keepLease(ctx context.Context) {
	tick := time.NewTicker(s.cluster.config.Lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lostLease:
			return
		case <-tick.C:
		}
		if err := s.renew(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, kv.ErrFailed) {
			s.cluster.log.Warn("lease not renewed", "store", s.name, "error", err)
		}
	}
}

// holdLease returns an error unless the lease is held: if it may have ended, it is renewed
// first. A process that was paused stops here.
func (s *Store) holdLease(ctx context.Context) error {
	if s.shared {
		return nil
	}
	if lost := s.lease.lost.Load(); lost != nil {
		return *lost
	}
	if s.holdsLease() {
		return nil
	}
	// Of the rows that are written side by side, the first renews it for all.
	if err := s.lease.renewing.take(ctx); err != nil {
		return err
	}
	defer s.lease.renewing.end()
	if lost := s.lease.lost.Load(); lost != nil {
		return *lost
	}
	if s.holdsLease() {
		return nil
	}
	return s.renew(ctx)
}

// holdsLease reports whether the lease cannot have ended.
func (s *Store) holdsLease() bool {
	return time.Duration(s.lease.since()-s.lease.renewed.Load()) < s.cluster.config.Lease
}

// waitForLease is holdLease for the beginning of a write, which waits for nodes.
func (s *Store) waitForLease(ctx context.Context) error {
	return s.cluster.retry(ctx, s.cluster.patience(ctx), s.holdLease)
}

// release gives the lease up, so that another process need not wait for its end.
func (s *Store) release(ctx context.Context) error {
	const end = "UPDATE " + tablePointers + " SET holder = null, clock = ?, bytes = ? WHERE store = ? IF fence = ? AND holder = ?"
	_, _, err := s.cluster.compareAndSet(ctx, time.Second, end, s.clock.now(), s.bytes.Load(), s.id, s.token, s.lease.holder)
	return err
}
