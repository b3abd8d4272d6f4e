package tip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// ErrRemoved means that the process that writes has removed blocks, which caches here may
// still have. The store must be opened again.
var ErrRemoved = errors.New("tip: blocks were removed by a rewind")

// Watched is the tip of a store to which another process writes. It never writes, and its
// methods that change a tip must not be called.
type Watched struct {
	*Tip
	settled func(context.Context) (chain.Ref, error)
	epoch   uint64

	// What was loaded last. It is the tree that readers see, or newer.
	loaded  *tree
	pointer []byte // that it was loaded from

	agreement *agreement // with other processes on what is shown; nil: everything is shown at once
}

// Watch loads the tip that another process keeps. settled reads the archive's settled block;
// it is called whenever the tip may have changed, before the change can be seen. It returns rows.ErrRewinding
// while blocks are being removed, since the network must not be used before that is complete.
func Watch(ctx context.Context, store kv.Store, tables []*kv.Table, settled func(context.Context) (chain.Ref, error)) (*Watched, error) {
	w := &Watched{Tip: &Tip{store: store, tables: newTables(tables)}, settled: settled}
	moved := make(chan struct{})
	w.moved.Store(&moved)
	empty := &tree{head: newBranch(chain.Ref{}, nil), blocks: make(map[common.Hash]*Block)}
	w.tree.Store(empty)
	w.loaded = empty
	epoch, removing, err := kv.Epoch(ctx, store)
	switch {
	case err != nil:
		return nil, fmt.Errorf("tip: %w", err)
	case removing:
		return nil, fmt.Errorf("tip: %w", rows.ErrRewinding)
	}
	w.epoch = epoch
	// The writer may drop a block between two reads of one attempt.
	for attempt := 0; ; attempt++ {
		err := w.Refresh(ctx)
		if errors.Is(err, ErrRemoved) { // the removal began in between
			return nil, fmt.Errorf("%w: %w", rows.ErrRewinding, err)
		}
		if err == nil || !errors.Is(err, ErrCorrupt) || attempt == 10 {
			return w, err
		}
	}
}

// Refresh loads what has been written since the last time, and shows it. If it fails, the tip
// stays as it is, and a later call may succeed. It must not be called concurrently, or after
// Join.
func (w *Watched) Refresh(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		return err
	}
	w.show(w.loaded)
	return nil
}

// load loads what has been written since the last time.
func (w *Watched) load(ctx context.Context) error {
	epoch, _, err := kv.Epoch(ctx, w.store)
	if err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	if epoch != w.epoch {
		return ErrRemoved
	}
	// The pointer is read first: blocks that are settled in between are in the archive, and
	// also in this pointer's list.
	value, err := w.store.Pointer(ctx, pointerTip)
	if errors.Is(err, kv.ErrNotFound) {
		value, err = make([]byte, 3*refBytes), nil
	}
	if err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	settled, err := w.settled(ctx)
	if err != nil {
		return err
	}
	now := w.loaded
	if settled == now.settled && bytes.Equal(value, w.pointer) {
		return nil
	}
	stored, err := decodePointer(value)
	if err != nil {
		return err
	}
	next, err := w.build(ctx, stored, settled, now.blocks)
	if err != nil {
		return err
	}
	if follower, ok := w.store.(kv.Follower); ok && settled != now.settled {
		follower.Follow(settled.Number, now.rowsTo(settled))
	}
	w.pointer, w.loaded = value, next
	return nil
}

// rowsTo yields the rows of the blocks after the settled one up to a block; nil if the tree
// does not have them.
func (n *tree) rowsTo(ref chain.Ref) iter.Seq2[*kv.Table, kv.Row] {
	branch, err := n.branch(ref.Hash)
	if err != nil {
		return nil
	}
	return func(yield func(*kv.Table, kv.Row) bool) {
		for _, block := range branch.blocks {
			if !block.eachRow(yield) {
				return
			}
		}
	}
}

// Run refreshes the tip every so often until ctx is done. Errors are logged, and end it only
// if the store must be opened again.
func (w *Watched) Run(ctx context.Context, every time.Duration, log *slog.Logger) error {
	refresh := w.Refresh
	if w.agreement != nil {
		defer w.leave(ctx)
		refresh = w.step
	}
	failing := false
	for {
		wait := every
		if w.agreement != nil && !failing && w.agreement.until.Load() == 0 {
			wait = min(every, agreeEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		err := refresh(ctx)
		switch {
		case errors.Is(err, ErrRemoved):
			return err
		case err == nil && failing:
			log.Info("new blocks are read again")
		case err != nil && !failing && ctx.Err() == nil && !errors.Is(err, ErrCorrupt): // a block may be dropped while it is read
			log.Warn("new blocks cannot be read; trying again", "error", err)
		}
		failing = err != nil && !errors.Is(err, ErrCorrupt)
	}
}
