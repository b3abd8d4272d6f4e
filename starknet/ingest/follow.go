package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/history/settling"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/retry"
	"ashlar/starknet"
	"ashlar/starknet/archive"

	"github.com/ethereum/go-ethereum/common"
)

// DefaultDepth is the default number of blocks below the head that are not settled. Starknet
// networks rarely revert blocks, and then only few.
const DefaultDepth = 64

// stopTime is for how long a block may still be written when the caller is done.
const stopTime = 5 * time.Second

// ErrTooDeep means that a reorganization would revert settled blocks.
var ErrTooDeep = errors.New("the reorganization goes below what is settled")

// Follower adds blocks to a tip as they arrive, reverts them on a reorganization, and settles
// them at a given depth. It implements the Chain of source/node. Nothing else may write to its
// archive or tip. It is safe for concurrent use; its methods are serialized.
type Follower struct {
	archive *archive.Archive
	store   kv.Store
	depth   uint64
	tip     atomic.Pointer[tip.Tip] // nil as long as there are no blocks

	writing sync.Mutex // held while the tip or the archive changes
}

// OpenFollower returns a Follower for the chain in an archive, which may be empty. Unsettled
// blocks are loaded from the archive's store.
func OpenFollower(ctx context.Context, store kv.Store, a *archive.Archive, depth uint64) (*Follower, error) {
	f := &Follower{archive: a, store: store, depth: depth}
	return f, f.openTip(ctx)
}

func (f *Follower) openTip(ctx context.Context) error {
	span := f.archive.Span()
	if span == nil {
		return nil
	}
	above, err := tip.Open(ctx, f.store, archive.Tables(), span.Last)
	if err == nil {
		f.tip.Store(above)
	}
	return err
}

// Tip returns the unsettled blocks, nil as long as there are no blocks.
func (f *Follower) Tip() *tip.Tip { return f.tip.Load() }

// Held returns the lowest and highest block.
func (f *Follower) Held(ctx context.Context) (first, head chain.Ref, ok bool, err error) {
	above, span := f.tip.Load(), f.archive.Span()
	if above == nil {
		return first, head, false, nil
	}
	header, err := f.archive.Settled(span).Header(ctx, span.First)
	if err != nil {
		return first, head, false, err
	}
	return header.Ref(), above.Forkchoice().Head.Ref(), true, nil
}

// Hash returns the hash of the block with a number between the lowest and the highest.
func (f *Follower) Hash(ctx context.Context, number uint64) (common.Hash, error) {
	if above := f.tip.Load(); above != nil {
		if ref, ok := above.Forkchoice().Head.At(number); ok {
			return ref.Hash, nil
		}
	}
	span := f.archive.Span()
	if span == nil {
		return common.Hash{}, fmt.Errorf("%w: block %d", rows.ErrNotFound, number)
	}
	header, err := f.archive.Settled(span).Header(ctx, number)
	if err != nil {
		return common.Hash{}, err
	}
	return common.Hash(header.Hash), nil
}

// Append adds the child of the highest block, or the very first block. When it returns, the
// block is durable, and blocks that are deep enough are settled. Once it has started to write,
// it completes even if ctx is done. If it fails to settle blocks, the block is the highest all
// the same, and the next call settles them before it adds another block.
func (f *Follower) Append(ctx context.Context, block *starknet.Block) error {
	if err := archive.Fits(block); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	// Do not stop between the writes to archive and tip, unless the store does not answer.
	ctx, cancel := retry.Outlast(ctx, stopTime)
	defer cancel()
	ref, above := block.Ref(), f.tip.Load()
	if above == nil {
		if err := f.begin(ctx, block); err != nil {
			return err
		}
		if above = f.tip.Load(); above.Forkchoice().Head.Ref() == ref {
			return nil
		}
	}
	// Blocks that an earlier call has not settled come first, so that the tip does not grow while they cannot be settled.
	if err := f.settle(ctx, above); err != nil {
		return err
	}
	head := above.Forkchoice().Head.Ref()
	if head == ref {
		return nil
	}
	if head.Hash != common.Hash(block.Parent) {
		return fmt.Errorf("%w: block %s with parent %s comes after block %s", rows.ErrNotNext, ref, block.Parent, head)
	}
	encoded := new(tip.Rows)
	archive.PutBlock(encoded, block)
	// Bound the number of reverted blocks that are kept.
	if err := settling.Prune(ctx, above, int(2*min(f.depth, math.MaxInt32)), ref.Hash); err != nil {
		return err
	}
	if err := above.Add(ctx, ref, common.Hash(block.Parent), encoded); err != nil {
		return err
	}
	if err := above.SetHead(ctx, ref.Hash, chain.Ref{}, chain.Ref{}); err != nil {
		return err
	}
	return f.settle(ctx, above)
}

// agree makes the tip know of blocks that the archive has settled, in case the write that would
// have recorded it failed. writing must be held.
func (f *Follower) agree(ctx context.Context, above *tip.Tip) error {
	settled := f.archive.Span().Last
	if above.Forkchoice().Head.Settled() == settled {
		return nil
	}
	return above.Overtaken(ctx, settled)
}

// complete completes an append that failed, and makes the tip know of it. writing must be held.
func (f *Follower) complete(ctx context.Context, above *tip.Tip) error {
	if err := f.archive.Complete(ctx); err != nil {
		return err
	}
	return f.agree(ctx, above)
}

// begin settles the very first block, on which the tip is based. If an earlier call failed after
// doing so, the block must be the same.
func (f *Follower) begin(ctx context.Context, block *starknet.Block) error {
	if err := f.archive.Complete(ctx); err != nil {
		return err
	}
	if f.archive.Span() == nil {
		if err := f.archive.Append(ctx, block); err != nil {
			return err
		}
	}
	if err := f.archive.Sync(ctx); err != nil {
		return err
	}
	return f.openTip(ctx)
}

// Settle settles the blocks that are deep enough, in case an earlier [Follower.Append] failed to. Once it has started to
// write, it completes even if ctx is done.
func (f *Follower) Settle(ctx context.Context) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	above := f.tip.Load()
	if above == nil {
		return nil
	}
	ctx, cancel := retry.Outlast(ctx, stopTime)
	defer cancel()
	return f.settle(ctx, above)
}

// settle settles the blocks that are deep enough.
func (f *Follower) settle(ctx context.Context, above *tip.Tip) error {
	if err := f.complete(ctx, above); err != nil {
		return err
	}
	head := above.Forkchoice().Head.Ref()
	if head.Number <= f.depth {
		return nil
	}
	blocks := above.Unsettled(head.Number - f.depth)
	if len(blocks) == 0 {
		return nil
	}
	encoded := make([]rows.Encoded, len(blocks))
	for i, block := range blocks {
		encoded[i] = block
	}
	if err := f.archive.AppendEncoded(ctx, encoded...); err != nil {
		return err
	}
	return above.Settled(ctx, blocks[len(blocks)-1].Ref())
}

// Revert removes all blocks above an ancestor of the highest. An ancestor below the last
// settled block is [ErrTooDeep].
func (f *Follower) Revert(ctx context.Context, ancestor chain.Ref) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	above := f.tip.Load()
	if above == nil {
		return fmt.Errorf("%w: block %s", tip.ErrUnknownBlock, ancestor)
	}
	// Blocks whose append failed are completed before they can be reverted: they may be settled.
	err := f.complete(ctx, above)
	if err != nil {
		return err
	}
	err = above.SetHead(ctx, ancestor.Hash, chain.Ref{}, chain.Ref{})
	if errors.Is(err, tip.ErrUnknownBlock) {
		return fmt.Errorf("%w: to block %s, settled is %s; if the source is right, run `ashlar rewind` with --to %d", ErrTooDeep, ancestor, f.archive.Span().Last, ancestor.Number)
	}
	return err
}
