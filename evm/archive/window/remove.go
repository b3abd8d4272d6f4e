package window

import (
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
	// pieceBytes is that of a store for which each removal is a statement of its own.
	pieceBytes = 16 << 10
)

// remove removes what is older than the history at to begins with; what is older than from
// is gone already.
func (r *Remover) remove(ctx context.Context, from, to archive.Extent) error {
	tables := archive.NamedTables()
	if to.Tries > from.Tries {
		if err := r.sweepAll(ctx, from.Tries, to.Tries, tables.TrieNodes); err != nil {
			return err
		}
	}
	if to.State > from.State {
		if err := r.sweepAll(ctx, from.State, to.State, tables.Accounts, tables.Slots, tables.TracePostings); err != nil {
			return err
		}
		for _, t := range []*kv.Table{tables.TraceCounts, tables.TxChanges} {
			if err := r.removeTraces(ctx, t, from.State, to.State); err != nil {
				return err
			}
		}
	}
	return r.removeBlocks(ctx, max(from.Blocks, 1), to.Blocks)
}

// sweepAll removes the rows of the states from a first one up to, not including, an end from tables. If these are most
// states, the tables are compacted: an engine might free the space only once many more rows are written. Whether they are
// does not depend on what an interrupted removal has done already.
func (r *Remover) sweepAll(ctx context.Context, first, end uint64, tables ...*kv.Table) error {
	settled, _ := r.archive.Settled()
	for _, t := range tables {
		err := r.sweep(ctx, t, end)
		if err == nil && end-first > settled.Number-end {
			r.Progress.Begin("compaction of "+t.Name, 0)
			err = r.store.Compact(ctx, t)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// removeTraces removes the rows of blocks from a first to a last one from a table of the trace index that has one for each.
func (r *Remover) removeTraces(ctx context.Context, t *kv.Table, first, last uint64) error {
	w := r.work()
	for first <= last {
		end := min(last, first|(1<<rows.ChunkBits-1))
		chunk := rows.Chunk(first)
		w.batch.DeleteRange(t, chunk[:], first, end)
		first = end + 1
		if !w.full() {
			continue
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// work is a batch of removals, and when the last rest ended.
type work struct {
	remover   *Remover
	batch     kv.Batch
	began     time.Time
	piecewise bool
}

func (r *Remover) work() *work {
	_, piecewise := r.store.(kv.Piecewise)
	return &work{remover: r, batch: r.store.NewBatch(), began: time.Now(), piecewise: piecewise}
}

// full reports whether the batch is to be written.
func (w *work) full() bool {
	return w.batch.Bytes() >= batchBytes || w.piecewise && w.batch.Bytes() >= pieceBytes
}

func (w *work) tired() bool {
	return w.remover.Work > 0 && time.Since(w.began) > w.remover.Work
}

// rest waits in proportion to the work done.
func (w *work) rest(ctx context.Context) error {
	if w.remover.Work == 0 {
		return ctx.Err()
	}
	err := retry.Sleep(ctx, time.Duration(w.remover.Rest)*time.Since(w.began))
	w.began = time.Now()
	return err
}

// flush writes the batch.
func (w *work) flush(ctx context.Context) error {
	if w.batch.Rows() == 0 {
		return nil
	}
	if err := w.remover.store.Write(ctx, w.batch); err != nil {
		return err
	}
	w.batch.Reset()
	return nil
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
		if err := derived.flush(ctx); err != nil {
			return err
		}
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
		return own.flush(ctx)
	}
	r.Progress.Begin("blocks", 1<<16)
	for number := first; number < end; number++ {
		r.Progress.Walked(float64(number-first) / float64(end-first))
		if err := r.removeBlock(ctx, a, number, derived.batch, own.batch); err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if !derived.full() && !derived.tired() {
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
	return a.EncodeBlock(removing{derived, tables, &r.removed}, delta, total)
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
