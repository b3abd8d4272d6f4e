package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// Write implements kv.Store: all of the batch or nothing. It checks ctx before it
// begins only.
func (s *Store) Write(ctx context.Context, kb kv.Batch) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	b, ok := kb.(*batch)
	if !ok || b.db != s.db {
		return fmt.Errorf("kv/pebble: Write got a %T of another store", kb)
	}
	if b.rows == 0 || b.err != nil || !b.reopen() {
		return b.err
	}
	if err := s.writable(); err != nil {
		return fmt.Errorf("kv/pebble: write %d rows: %w", b.rows, err)
	}
	if b.sets {
		s.pointers.Lock()
		defer s.pointers.Unlock()
	}
	if s.bulk {
		return s.applySorted(b)
	}
	return s.apply(b)
}

// writable returns why writes are refused, or nil.
func (s *Store) writable() error {
	if _, err := s.guard.problem(); err != nil {
		return err
	}
	return s.space.check()
}

// apply commits a batch and makes it visible.
func (s *Store) apply(b *batch) error {
	taken := b.b
	b.written = taken.Repr()
	header := [batchrepr.HeaderLen]byte(b.written) // where Pebble writes
	err := s.guard.run(func() error { return s.db.Apply(taken, lsm.NoSync) })
	if err != nil {
		// Pebble may still be at work on the batch: leave it and go on with a copy.
		b.written = slices.Concat(header[:], b.written[len(header):])
		b.b = newLSMBatch(s.db)
		return fmt.Errorf("kv/pebble: write %d rows: %w", b.rows, err)
	}
	return s.pool.advance()
}

// applySorted is apply for a bulk load. Pebble gets a copy of the batch, with the rows in the order of their
// keys.
func (s *Store) applySorted(b *batch) error {
	order := newSorter()
	encoded, ok := order.sorted(b.b.Repr())
	taken := new(lsm.Batch)
	err := lsm.ErrInvalidBatch
	if ok {
		err = taken.SetRepr(encoded)
	}
	if err == nil {
		err = s.guard.run(func() error { return s.db.Apply(taken, lsm.NoSync) })
	}
	if err != nil { // Pebble may still be at work on the copy: leave its memory alone
		return fmt.Errorf("kv/pebble: write %d rows: %w", b.rows, err)
	}
	// Pebble keeps a copy that is larger than half of a memtable, in place of one, until it is flushed.
	if ours := &taken.Repr()[0] == &encoded[0]; ours {
		order.giveBack()
	}
	return s.pool.advance()
}

// Drop implements kv.Store.
func (s *Store) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := checkRow(t, partition); err != nil {
		return err
	}
	if !t.Transient {
		return fmt.Errorf("kv/pebble: partition of table %q cannot be dropped: the table is not transient", t.Name)
	}
	first := appendPrefix(nil, t.ID, partition)
	end := immediateSuccessor(nil, first)
	if err := s.guard.run(func() error { return s.db.DeleteRange(first, end, lsm.NoSync) }); err != nil {
		return fmt.Errorf("kv/pebble: drop a partition of table %q: %w", t.Name, err)
	}
	return s.pool.advance()
}

// Sync implements kv.Store. Without a log it writes the memtables out.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.guard.run(s.sync); err != nil {
		return fmt.Errorf("kv/pebble: sync: %w", err)
	}
	return nil
}

func (s *Store) sync() error {
	if s.bulk {
		return s.db.Flush()
	}
	// An empty synced record: the log is written in order, so when it is on disk
	// everything before it is.
	return s.db.LogData(nil, lsm.Sync)
}

// CompareAndSet implements kv.Store.
func (s *Store) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	s.pointers.Lock()
	defer s.pointers.Unlock()
	now, err := s.Pointer(ctx, name)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if old != nil {
			return kv.ErrConflict
		}
	case err != nil:
		return err
	case old == nil || !bytes.Equal(now, old):
		return kv.ErrConflict
	}
	if err := s.writable(); err != nil {
		return fmt.Errorf("kv/pebble: set pointer %q: %w", name, err)
	}
	b := s.newBatch()
	b.SetPointer(name, value)
	if err := s.apply(b); err != nil {
		return err
	}
	return s.Sync(ctx)
}
