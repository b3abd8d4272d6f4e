package cassandra

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	writesAtOnce = 128
	// groupBytes is the size of rows of one partition that are sent together. Cassandra
	// warns of batches of 5 KiB or more.
	groupBytes = 4 << 10
)

// errReadOnly is returned by writes to a store that was opened to be read only.
var errReadOnly = errors.New("kv/cassandra: the store is open for reading only")

// Write implements kv.Store: rows first, then all pointers at once. While too few nodes
// answer it waits until ctx is done; without a deadline it waits for the nodes.
func (s *Store) Write(ctx context.Context, kb kv.Batch) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	b, ok := kb.(*batch)
	if !ok || b.store != s {
		return fmt.Errorf("kv/cassandra: Write got a %T of another store", kb)
	}
	if b.err != nil || b.Rows() == 0 {
		return b.err
	}
	if s.readOnly {
		return errReadOnly
	}
	err := s.writeRows(ctx, b.rows)
	if err == nil {
		err = s.remove(ctx, b.removals)
	}
	if err == nil && len(b.pointers) > 0 {
		err = s.writePointers(ctx, b.pointers)
	}
	if err != nil {
		return fmt.Errorf("kv/cassandra: write %d rows: %w", b.Rows(), err)
	}
	return nil
}

// Piecewise implements kv.Piecewise.
func (s *Store) Piecewise() {}

// patience is how long a write is tried again.
func (c *Cluster) patience(ctx context.Context) time.Duration {
	if _, ok := ctx.Deadline(); ok {
		return c.config.readPatience
	}
	return -1
}

// place is a row with the part of its partition that it belongs to.
type place struct {
	*row
	part int
}

// writeRows writes rows, and returns when a quorum of replicas has all of them.
func (s *Store) writeRows(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	if err := s.waitForLease(ctx); err != nil {
		return err
	}
	if err := s.cluster.retry(ctx, s.cluster.patience(ctx), func(ctx context.Context) error { return s.createTables(ctx, rows) }); err != nil {
		return err
	}
	if s.mayGrow(rows) {
		if err := s.growing.take(ctx); err != nil {
			return err
		}
		defer s.growing.end()
		if err := s.grow(ctx, rows); err != nil {
			return err
		}
	}
	at := s.clock.next()
	err := each(ctx, groups(s.places(rows)), func(ctx context.Context, group []place) error { return s.writeGroup(ctx, group, at) })
	if err != nil {
		return err
	}
	var size int64
	for i := range rows {
		size += rows[i].size()
	}
	s.bytes.Add(size)
	return nil
}

// each calls do for all items, writesAtOnce at a time, until one fails.
func each[T any](ctx context.Context, items iter.Seq[T], do func(context.Context, T) error) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	free := make(chan struct{}, writesAtOnce)
	for item := range items {
		free <- struct{}{}
		if working.Err() != nil {
			break
		}
		workers.Go(func() {
			defer func() { <-free }()
			if err := do(working, item); err != nil {
				stop(err)
			}
		})
	}
	workers.Wait()
	return context.Cause(working)
}

// createTables creates the tables of rows that do not exist yet.
func (s *Store) createTables(ctx context.Context, rows []row) error {
	var last *kv.Table
	for i := range rows {
		if rows[i].table == last {
			continue
		}
		last = rows[i].table
		if err := s.cluster.create(ctx, s.cluster.table(last)); err != nil {
			return err
		}
	}
	return nil
}

// places finds the part of each row, and orders rows by table, partition and part.
func (s *Store) places(rows []row) []place {
	places := make([]place, len(rows))
	for i := range rows {
		starts, _ := s.splits.known(rows[i].table, rows[i].partition)
		places[i] = place{&rows[i], partOf(starts, rows[i].sort)}
	}
	slices.SortStableFunc(places, comparePlaces)
	return places
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.table.ID, b.table.ID), bytes.Compare(a.partition, b.partition), cmp.Compare(a.part, b.part))
}

// groups yields rows of one partition each that are sent together.
func groups(places []place) iter.Seq[[]place] {
	return func(yield func([]place) bool) {
		for len(places) > 0 {
			n, size := 1, places[0].size()
			for n < len(places) && comparePlaces(places[0], places[n]) == 0 {
				if size += places[n].size(); size > groupBytes {
					break
				}
				n++
			}
			if !yield(places[:n]) {
				return
			}
			places = places[n:]
		}
	}
}

// writeGroup writes rows of one partition.
func (s *Store) writeGroup(ctx context.Context, group []place, at int64) error {
	st := s.cluster.table(group[0].table)
	values := func(p place) []any { return []any{s.id, p.partition, p.part, sortColumn(p.sort), p.value} }
	return s.cluster.retry(ctx, s.cluster.patience(ctx), func(ctx context.Context) error {
		if err := s.holdLease(ctx); err != nil {
			return err
		}
		if len(group) == 1 {
			put := s.cluster.session.Query(st.put, values(group[0])...).WithTimestamp(at)
			return put.SetSpeculativeExecutionPolicy(s.cluster.speculation).ExecContext(ctx)
		}
		b := s.cluster.session.Batch(gocql.UnloggedBatch).WithTimestamp(at).SpeculativeExecutionPolicy(s.cluster.speculation)
		for _, p := range group {
			b.Entries = append(b.Entries, gocql.BatchEntry{Stmt: st.put, Args: values(p), Idempotent: true})
		}
		return b.ExecContext(ctx)
	})
}

// setPointer sets a pointer in a batch that has a condition.
const setPointer = "UPDATE " + tablePointers + " SET value = ?, writer = ? WHERE store = ? AND name = ?"

// writePointers sets pointers, all at once, if the lease is still held.
func (s *Store) writePointers(ctx context.Context, pointers []pointer) error {
	last := map[string][]byte{}
	for _, p := range pointers {
		last[p.name] = p.value
	}
	by := gocql.MustRandomUUID()
	add := func(b *gocql.Batch) {
		for name, value := range last {
			b.Query(setPointer, value, by, s.id, name)
		}
	}
	if !s.shared {
		return s.change(ctx, s.cluster.patience(ctx), nil, add)
	}
	const condition = "UPDATE " + tablePointers + " SET clock = ? WHERE store = ? IF fence = ?"
	applied, now, err := s.conditionally(ctx, s.cluster.patience(ctx), func(b *gocql.Batch) {
		b.Query(condition, s.clock.now(), s.id, s.token)
		add(b)
	})
	if err == nil && !applied {
		err = s.loseLease(now)
	}
	return err
}

// errSwapped means that an earlier attempt of the same change was successful.
var errSwapped = errors.New("already set")

// swapPointer is CompareAndSet in a leased store, which no other process changes.
func (s *Store) swapPointer(ctx context.Context, name string, old, value []byte) error {
	by := gocql.MustRandomUUID()
	check := func(ctx context.Context) error {
		now, err := s.Pointer(ctx, name)
		missing := errors.Is(err, kv.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		if missing && old == nil || !missing && old != nil && bytes.Equal(now, old) {
			return nil
		}
		if err := s.confirm(ctx, name, by); err != nil {
			return err
		}
		return errSwapped
	}
	err := s.change(ctx, s.cluster.patience(ctx), check, func(b *gocql.Batch) { b.Query(setPointer, value, by, s.id, name) })
	if errors.Is(err, errSwapped) {
		return nil
	}
	return err
}

// CompareAndSet implements kv.Store.
func (s *Store) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := checkPointer(name); err != nil {
		return err
	}
	if s.readOnly {
		return errReadOnly
	}
	value = copied(value)
	if !s.shared {
		return s.swapPointer(ctx, name, old, value)
	}
	set := "UPDATE " + tablePointers + " SET value = ?, writer = ? WHERE store = ? AND name = ? IF fence = ? AND value = "
	by := gocql.MustRandomUUID()
	args := []any{value, by, s.id, name, s.token}
	if old == nil {
		set += "null"
	} else {
		set, args = set+"?", append(args, copied(old))
	}
	applied, now, err := s.cluster.compareAndSet(ctx, s.cluster.patience(ctx), set, args...)
	switch {
	case err != nil:
		return fmt.Errorf("kv/cassandra: set pointer %q: %w", name, err)
	case applied:
		return nil
	}
	if token, ok := now["fence"].(int64); ok && token != s.token {
		return s.loseLease(now)
	}
	return s.confirm(ctx, name, by)
}

// confirm returns nil if a change that was not applied had been applied by an earlier
// attempt without an answer.
func (s *Store) confirm(ctx context.Context, name string, by gocql.UUID) error {
	var found gocql.UUID
	query := s.cluster.session.Query("SELECT writer FROM "+tablePointers+" WHERE store = ? AND name = ?", s.id, name)
	err := s.cluster.scan(ctx, query.Consistency(s.cluster.serial), &found)
	if errors.Is(err, kv.ErrNotFound) || err == nil && found != by {
		return kv.ErrConflict
	}
	return err
}

// Drop implements kv.Store.
func (s *Store) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	st, err := s.prepare(ctx, t, partition)
	if err != nil {
		return err
	}
	if !t.Transient {
		return fmt.Errorf("kv/cassandra: partition of table %q cannot be dropped: the table is not transient", t.Name)
	}
	if s.readOnly {
		return errReadOnly
	}
	if err := s.waitForLease(ctx); err != nil {
		return err
	}
	if err := s.outlast(ctx, st, notNil(partition), 0, ^uint64(0)); err != nil {
		return fmt.Errorf("kv/cassandra: drop a partition of table %q: %w", t.Name, err)
	}
	drop := s.cluster.session.Query(st.drop, s.id, copied(partition), 0).WithTimestamp(s.clock.next())
	if err := s.orNoTable(ctx, st, s.cluster.exec(ctx, s.cluster.patience(ctx), drop)); err != nil {
		return fmt.Errorf("kv/cassandra: drop a partition of table %q: %w", t.Name, err)
	}
	return nil
}
