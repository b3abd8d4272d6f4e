package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"ashlar/evm"
	"ashlar/kv"
)

// Older adds blocks before the first one of an archive, without their state. They are
// verified by hash alone: the last of them must be the parent of the first block.
//
//	older  = lowest    rows from here to the first block may be there in part
//	...                rows are written
//	first  = lowest    all blocks become visible at once
//
// It belongs to one goroutine, and nothing else may write to the archive meanwhile.
type Older struct {
	archive *Archive
	batch   kv.Batch
	lowest  uint64
	next    uint64 // block
}

// AddOlder begins to add the blocks from a number on that are before the first one.
func (a *Archive) AddOlder(ctx context.Context, from uint64) (*Older, error) {
	if first := a.Extent().Blocks; from == 0 || from >= first {
		return nil, fmt.Errorf("archive: add blocks from %d on: the first block is %d", from, first)
	}
	under, err := a.OlderUnder(ctx) // of an addition that began lower, and was interrupted
	if err != nil {
		return nil, err
	}
	o := &Older{archive: a, batch: a.store.NewBatch(), lowest: from, next: from}
	SetOlder(o.batch, min(from, under))
	return o, o.flush(ctx, 0)
}

// Put adds the next block. totalDifficulty is that of the chain including the block.
func (o *Older) Put(ctx context.Context, delta *evm.Delta, totalDifficulty *big.Int) error {
	if got := delta.Block.NumberU64(); got != o.next || got >= o.archive.Extent().Blocks {
		return fmt.Errorf("%w: block %d (want block %d, and only blocks below %d)", ErrNotNext, got, o.next, o.archive.Extent().Blocks)
	}
	o.next++
	if err := o.archive.EncodeBlock(o.batch, delta, totalDifficulty); err != nil {
		return err
	}
	return o.flush(ctx, startBatchBytes)
}

// Finish makes the blocks visible. They must be all up to the first one.
func (o *Older) Finish(ctx context.Context) error {
	extent := o.archive.Extent()
	if o.next != extent.Blocks {
		return fmt.Errorf("%w: blocks up to %d are missing", ErrNotNext, extent.Blocks-1)
	}
	if err := o.flush(ctx, 0); err != nil {
		return err
	}
	if err := o.archive.store.Sync(ctx); err != nil {
		return err
	}
	if extent.Blocks = o.lowest; o.lowest == 1 { // after the genesis
		extent.Blocks = 0
	}
	setExtent(o.batch, extent)
	if err := o.flush(ctx, 0); err != nil {
		return err
	}
	if err := o.archive.store.Sync(ctx); err != nil {
		return err
	}
	o.archive.extent.Store(&extent)
	return nil
}

func (o *Older) flush(ctx context.Context, least int) error {
	if o.batch.Bytes() < least {
		return nil
	}
	if err := o.archive.store.Write(ctx, o.batch); err != nil {
		return fmt.Errorf("archive: add blocks from %d on: %w", o.lowest, err)
	}
	o.batch.Reset()
	return nil
}

// OlderUnder returns the lowest block after the genesis of which an interrupted [Older], or the
// removal of older blocks, may have left rows, or the first block of the archive.
func (a *Archive) OlderUnder(ctx context.Context) (uint64, error) {
	first := a.Extent().Blocks
	removed, there, err := a.Removed(ctx)
	if err != nil {
		return first, err
	}
	if there {
		first = min(first, max(removed.Blocks, 1))
	}
	lowest, there, err := readOlder(ctx, a.store)
	if !there || err != nil {
		return first, err
	}
	return min(first, lowest), nil
}

// readOlder returns the lowest block of which an [Older] has written rows, or false if there was none.
func readOlder(ctx context.Context, store kv.Reader) (lowest uint64, there bool, err error) {
	value, err := store.Pointer(ctx, pointerOlder)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("archive: %s: %w", pointerOlder, err)
	case len(value) != 8:
		return 0, false, fmt.Errorf("%w: the older pointer has %d bytes", ErrCorrupt, len(value))
	}
	return binary.BigEndian.Uint64(value), true, nil
}

// SetOlder sets the lowest block before the first one of which rows may be there.
func SetOlder(batch kv.Batch, lowest uint64) {
	batch.SetPointer(pointerOlder, binary.BigEndian.AppendUint64(nil, lowest))
}
