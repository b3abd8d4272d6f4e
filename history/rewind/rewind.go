// Package rewind takes the settled history of a network back to an earlier block: it removes
// every row that belongs to later blocks. It knows no family.
//
// A rewind is complete or under way, never half done unnoticed. The order of its writes, each
// durable before the next:
//
//	rewind = block     the block to go back to
//	epoch  = odd       from here on nobody begins to serve the store, or writes anything else to it
//	...                a pause, for other processes that serve it, until they have ended
//	...                rows are removed, the tip is emptied
//	settled = block
//	epoch  = even      done
//
// A crash anywhere leaves a store on which [Run] can be run again.
package rewind

import (
	"context"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/history/settling"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrNotSettled means that the block to go back to is not a settled one.
	ErrNotSettled = errors.New("the block is not settled")
	// ErrUnderWay means that an unfinished rewind goes back further.
	ErrUnderWay = errors.New("an earlier rewind is not complete")
)

const (
	// batchBytes is the size of a batch of removals.
	batchBytes = 1 << 20
	// fewRows of a partition are removed one by one, more as a range.
	fewRows = 32
)

// Plan says what to remove.
type Plan struct {
	To uint64 // the last block that stays; it is settled
	// Hash returns the hash of that block.
	Hash func(context.Context) (common.Hash, error)
	// Tables lists every table of the family. A row whose sort key is of a block after To is
	// removed.
	Tables []*kv.Table
	// Others, if set, returns further rows to remove: those that belong to later blocks,
	// but whose sort key is not of a block. It is called before anything is removed.
	Others func(context.Context) ([]Row, error)
	// Pointers, if set, sets further pointers together with the settled one.
	Pointers func(kv.Batch)
}

// Row is the key of a row.
type Row struct {
	Table     *kv.Table
	Partition []byte
	Sort      uint64
}

// Done is what a rewind did.
type Done struct {
	From, To chain.Ref // the last settled block before and after
	Rows     uint64    // removed from the tables of the plan by this run
}

// Run takes the history in a store back, or completes a rewind that was interrupted.
// Nobody else may have the store open.
func Run(ctx context.Context, store kv.Store, plan Plan, progress *audit.Progress) (Done, error) {
	r := &run{store: store, plan: plan, progress: progress, batch: store.NewBatch()}
	err := r.run(ctx)
	return r.done, err
}

type run struct {
	store    kv.Store
	plan     Plan
	progress *audit.Progress
	batch    kv.Batch
	done     Done
}

func (r *run) run(ctx context.Context) error {
	epoch, removing, err := kv.Epoch(ctx, r.store)
	if err != nil {
		return err
	}
	if err := r.check(ctx, removing); err != nil {
		return err
	}
	rows.SetRewindTarget(r.batch, r.done.To)
	if err := r.flushDurably(ctx); err != nil {
		return err
	}
	if !removing {
		if err := rows.SetEpoch(ctx, r.store, epoch, epoch+1); err != nil {
			return err
		}
		epoch++
	}
	if err = tip.AwaitReaders(ctx, r.store); err == nil {
		err = r.remove(ctx)
	}
	if err != nil {
		return fmt.Errorf("rewind to block %s is not complete; run it again: %w", r.done.To, err)
	}
	return rows.SetEpoch(ctx, r.store, epoch, epoch+1)
}

// check checks the block to go back to, and finds its hash.
func (r *run) check(ctx context.Context, removing bool) error {
	if removing {
		before, err := rows.RewindTarget(ctx, r.store)
		if err != nil {
			return err
		}
		if r.plan.To > before.Number {
			return fmt.Errorf("%w: it goes back to block %d (want that block or an earlier one)", ErrUnderWay, before.Number)
		}
	}
	settled, ok, err := rows.Settled(ctx, r.store)
	if err != nil {
		return err
	}
	if !ok || settled.Number < r.plan.To {
		return fmt.Errorf("%w: block %d (want at most %d, the last settled one; blocks above it go back by themselves with their source)", ErrNotSettled, r.plan.To, settled.Number)
	}
	hash, err := r.plan.Hash(ctx)
	if err != nil {
		return err
	}
	r.done.From, r.done.To = settled, chain.Ref{Number: r.plan.To, Hash: hash}
	return nil
}

// remove removes all rows of later blocks, and moves the settled pointer.
func (r *run) remove(ctx context.Context) error {
	if err := r.removeOthers(ctx); err != nil {
		return err
	}
	for _, table := range r.plan.Tables {
		if err := r.removeFrom(ctx, table); err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	if err := tip.Clear(ctx, r.store, r.done.To); err != nil {
		return err
	}
	if err := r.store.Sync(ctx); err != nil {
		return err
	}
	rows.SetSettled(r.batch, r.done.To)
	if _, ok := r.store.(kv.Piecewise); ok {
		settling.Forget(r.batch)
	}
	if r.plan.Pointers != nil {
		r.plan.Pointers(r.batch)
	}
	return r.flushDurably(ctx)
}

// removeOthers removes the rows whose sort key is not of a block. They are durably gone
// before the rows from which Others knows them.
func (r *run) removeOthers(ctx context.Context) error {
	if r.plan.Others == nil {
		return nil
	}
	others, err := r.plan.Others(ctx)
	if err != nil {
		return err
	}
	for _, row := range others {
		r.batch.Delete(row.Table, row.Partition, row.Sort)
		r.count(1)
		if err := r.flush(ctx, batchBytes); err != nil {
			return err
		}
	}
	return r.flushDurably(ctx)
}

// removeFrom removes the rows of a table that are of later blocks.
func (r *run) removeFrom(ctx context.Context, table *kv.Table) error {
	r.progress.Begin(table.Name, 1<<16)
	from := (r.plan.To + 1) << table.IndexBits
	var partition []byte
	var sorts []uint64 // of the partition, fewRows at most
	finish := func() error {
		if len(sorts) == fewRows {
			r.batch.DeleteRange(table, partition, from, ^uint64(0))
		} else {
			for _, sort := range sorts {
				r.batch.Delete(table, partition, sort)
			}
		}
		sorts = sorts[:0]
		return r.flush(ctx, batchBytes)
	}
	// The rows of a block whose settling was cut off may be at one node.
	for row, err := range kv.WalkReplicas(ctx, r.store, table, from) {
		if err != nil {
			return err
		}
		if string(row.Partition) != string(partition) {
			if err := finish(); err != nil {
				return err
			}
			partition = append(partition[:0], row.Partition...)
			r.progress.Walked(row.Walked)
		}
		if len(sorts) < fewRows {
			sorts = append(sorts, row.Sort)
		}
		r.count(1)
	}
	if err := finish(); err != nil {
		return err
	}
	return r.flush(ctx, 1)
}

func (r *run) count(n uint64) {
	r.done.Rows += n
	r.progress.Read(n)
}

// flush writes the batch if it has at least a number of bytes.
func (r *run) flush(ctx context.Context, least int) error {
	if r.batch.Rows() == 0 || r.batch.Bytes() < least {
		return nil
	}
	if err := r.store.Write(ctx, r.batch); err != nil {
		return err
	}
	r.batch.Reset()
	return nil
}

// flushDurably writes the batch, and makes everything written durable.
func (r *run) flushDurably(ctx context.Context) error {
	if err := r.flush(ctx, 1); err != nil {
		return err
	}
	return r.store.Sync(ctx)
}
