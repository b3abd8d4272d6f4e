package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/evm/archive"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/retry"
)

const (
	// batchBytes is the size of a batch of removals.
	batchBytes = 256 << 10
	// fewRows of a partition are removed one by one, more as a range.
	fewRows = 32
)

// remove removes what is older than the history at to begins with; what is older than from
// is gone already.
func (r *Remover) remove(ctx context.Context, from, to archive.Extent) error {
	tables := archive.NamedTables()
	if to.State > from.State {
		for _, t := range []*kv.Table{tables.Accounts, tables.Slots, tables.TrieNodes, tables.TracePostings} {
			if err := r.sweep(ctx, t, to.State); err != nil {
				return fmt.Errorf("table %s: %w", t.Name, err)
			}
		}
		if err := r.removeTraceCounts(ctx, from.State, to.State); err != nil {
			return err
		}
	}
	return r.removeBlocks(ctx, max(from.Blocks, 1), to.Blocks)
}

// removeTraceCounts removes the rows of the trace index of blocks from a first to a last one.
func (r *Remover) removeTraceCounts(ctx context.Context, first, last uint64) error {
	w := r.work()
	for first <= last {
		end := min(last, first|(1<<rows.ChunkBits-1))
		chunk := rows.Chunk(first)
		w.batch.DeleteRange(archive.NamedTables().TraceCounts, chunk[:], first, end)
		first = end + 1
		if err := w.flush(ctx, batchBytes); err != nil {
			return err
		}
	}
	return w.flush(ctx, 1)
}

// sweep removes the versions in a table that are older than the state of a block needs, or
// the rows of the trace index of the blocks up to it. It works in slices, so that no view of
// the store is held for long.
func (r *Remover) sweep(ctx context.Context, t *kv.Table, state uint64) error {
	w := r.work()
	s := &slice{work: w, table: t, state: state, keepNewest: t != archive.NamedTables().TracePostings}
	_, s.piecewise = r.store.(kv.Piecewise)
	for done := false; !done; {
		var err error
		if done, err = s.run(ctx); err != nil {
			return err
		}
		if err := w.flush(ctx, 1); err != nil {
			return err
		}
		if err := w.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// work is a batch of removals, and when the last rest ended.
type work struct {
	remover *Remover
	batch   kv.Batch
	began   time.Time
}

func (r *Remover) work() *work {
	return &work{remover: r, batch: r.store.NewBatch(), began: time.Now()}
}

func (w *work) tired() bool {
	return w.remover.Work > 0 && time.Since(w.began) > w.remover.Work
}

// rest waits in proportion to the work done.
func (w *work) rest(ctx context.Context) error {
	err := retry.Sleep(ctx, time.Duration(w.remover.Rest)*time.Since(w.began))
	w.began = time.Now()
	return err
}

// flush writes the batch if it has at least a number of bytes.
func (w *work) flush(ctx context.Context, least int) error {
	if w.batch.Rows() == 0 || w.batch.Bytes() < least {
		return nil
	}
	if err := w.remover.store.Write(ctx, w.batch); err != nil {
		return err
	}
	w.batch.Reset()
	return nil
}

// slice is a part of a sweep.
type slice struct {
	*work
	table      *kv.Table
	state      uint64
	keepNewest bool // the newest row at or below state
	piecewise  bool

	after []byte // last partition that has rows and is done; nil: none
	old   oldRows
}

// oldRows are the rows of a partition at or below the state.
type oldRows struct {
	partition []byte
	count     uint64
	newest    uint64
	gone      bool     // the newest is a deletion
	others    []uint64 // fewRows at most
	later     bool     // there are rows above the state
}

// run walks over partitions until the work is tired, or returns true at the end.
func (s *slice) run(ctx context.Context) (done bool, err error) {
	any := false
	for row, err := range s.remover.store.WalkAfter(ctx, s.table, s.after, 0) {
		if err != nil {
			return false, err
		}
		if !any || !bytes.Equal(s.old.partition, row.Partition) {
			if any {
				if err := s.trim(ctx); err != nil {
					return false, err
				}
				if s.tired() {
					return false, nil
				}
			}
			any = true
			s.old = oldRows{partition: append(s.old.partition[:0], row.Partition...), others: s.old.others[:0]}
		}
		s.old.add(row, s.state)
	}
	if !any {
		return true, nil
	}
	return true, s.trim(ctx)
}

func (o *oldRows) add(row kv.Row, state uint64) {
	if row.Sort > state {
		o.later = true
		return
	}
	other := row.Sort
	if o.count++; o.count == 1 || row.Sort > o.newest {
		other, o.newest, o.gone = o.newest, row.Sort, len(row.Value) == 0
	}
	if o.count > 1 && len(o.others) < fewRows {
		o.others = append(o.others, other)
	}
}

// trim removes the rows of a partition that are not needed.
func (s *slice) trim(ctx context.Context) error {
	o := &s.old
	if s.keepNewest && o.count > 0 && !o.gone || o.later {
		s.after = append(s.after[:0], o.partition...)
	}
	switch {
	case o.count == 0:
		return nil
	case !s.keepNewest || o.gone:
		o.others = append(o.others, o.newest)
		s.removeBelow(o.newest + 1)
	case o.count > 1:
		keep := o.newest
		if s.table == archive.NamedTables().TrieNodes {
			oldest, err := archive.OldestNode(ctx, s.remover.store, o.partition, o.newest, !s.piecewise)
			if err != nil {
				return err
			}
			if keep = oldest.Keep; oldest.Whole != nil {
				s.batch.Put(s.table, o.partition, o.newest, oldest.Whole)
			}
		}
		s.removeBelow(keep)
	}
	return s.flush(ctx, batchBytes)
}

// removeBelow removes the rows of the partition below a sort key.
func (s *slice) removeBelow(keep uint64) {
	if keep == 0 {
		return
	}
	if s.old.count > fewRows {
		s.batch.DeleteRange(s.table, s.old.partition, 0, keep-1)
		s.remover.removed.Add(s.old.count - 1)
		return
	}
	for _, sort := range s.old.others {
		if sort < keep {
			s.batch.Delete(s.table, s.old.partition, sort)
			s.remover.removed.Add(1)
		}
	}
}

// removeBlocks removes the blocks from a first one up to, not including, an end.
func (r *Remover) removeBlocks(ctx context.Context, first, end uint64) error {
	if first >= end {
		return nil
	}
	a, err := archive.Open(ctx, r.store) // with caches of its own
	if err != nil {
		return err
	}
	// The rows that are found through others are durably gone before those.
	derived, own := r.work(), r.work()
	settle := func() error {
		if err := derived.flush(ctx, 1); err != nil {
			return err
		}
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
		return own.flush(ctx, 1)
	}
	for number := first; number < end; number++ {
		if err := r.removeBlock(ctx, a, number, derived.batch, own.batch); err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if derived.batch.Bytes() < batchBytes && !derived.tired() {
			continue
		}
		if err := settle(); err != nil {
			return err
		}
		if err := derived.rest(ctx); err != nil {
			return err
		}
	}
	return settle()
}

// removeBlock removes the rows of a block: the derived ones are those that encoding the block
// again makes. If it cannot be read any more, they are gone already.
func (r *Remover) removeBlock(ctx context.Context, a *archive.Archive, number uint64, derived, own kv.Batch) error {
	tables := archive.NamedTables()
	chunk := rows.Chunk(number)
	for _, t := range tables.Own() {
		own.Delete(t, chunk[:], number)
	}
	delta, total, err := archive.ReadBlock(ctx, a, number)
	if gone := (*archive.Pruned)(nil); errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return err
	}
	return archive.EncodeBlock(removing{derived, tables, &r.removed}, delta, total)
}

// removing removes the derived rows that are put.
type removing struct {
	batch  kv.Batch
	tables archive.TableSet
	count  interface{ Add(uint64) uint64 }
}

// Put implements kv.Putter.
func (d removing) Put(t *kv.Table, partition []byte, sort uint64, _ []byte) {
	d.count.Add(1)
	for _, derived := range d.tables.Derived() {
		if t == derived {
			d.batch.Delete(t, partition, sort)
		}
	}
}
