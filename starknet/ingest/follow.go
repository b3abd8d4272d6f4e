package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/archive"

	"github.com/ethereum/go-ethereum/common"
)

// DefaultDepth is how many blocks below the head stay in the tip. A Starknet network's
// sequencer takes back few blocks, and rarely any.
const DefaultDepth = 64

// ErrTooDeep says that blocks are to be taken back which are settled.
var ErrTooDeep = errors.New("the reorganization goes below what is settled")

// Follower brings blocks that arrive one by one into a tip, takes them back when
// the chain is reorganized, and settles them once they lie deep enough. While it is
// used nobody else may write to its archive or tip. Its methods may be called from
// many goroutines at once; they wait for each other.
//
// It is what a source follows a node's chain for.
type Follower struct {
	archive *archive.Archive
	store   kv.Store
	depth   uint64
	tip     atomic.Pointer[tip.Tip] // nil while there are no blocks

	writing sync.Mutex // held while the tip or the archive changes
}

// OpenFollower makes the follower of the chain that an archive holds, which may
// have no blocks yet, with what is unsettled of it in the archive's store.
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

// Tip holds the unsettled blocks; nil while there are no blocks at all.
func (f *Follower) Tip() *tip.Tip { return f.tip.Load() }

// Held names the lowest and the highest block that are held.
func (f *Follower) Held(ctx context.Context) (first, head chain.Ref, ok bool, err error) {
	above, span := f.tip.Load(), f.archive.Span()
	if above == nil {
		return first, head, false, nil
	}
	header, err := f.archive.Settled(span).Header(ctx, span.First)
	if err != nil {
		return first, head, false, err
	}
	return header.Ref(), above.Standing().Head.Ref(), true, nil
}

// Hash is that of the block with a number from the lowest to the highest.
func (f *Follower) Hash(ctx context.Context, number uint64) (common.Hash, error) {
	if above := f.tip.Load(); above != nil {
		if ref, ok := above.Standing().Head.At(number); ok {
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

// Append takes the child of the highest block, or the first of all. It becomes the
// highest. On return it is durable, and settled is what lies deep enough below it.
// Once it has begun it is ended, though ctx may be done meanwhile.
func (f *Follower) Append(ctx context.Context, block *starknet.Block) error {
	if err := archive.Fits(block); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	// The tip must know what the archive was given, and what its head is.
	ctx = context.WithoutCancel(ctx)
	ref, above := block.Ref(), f.tip.Load()
	if above == nil {
		if err := f.begin(ctx, block); err != nil {
			return err
		}
		if above = f.tip.Load(); above.Standing().Head.Ref() == ref {
			return nil
		}
	}
	if head := above.Standing().Head.Ref(); head.Hash != common.Hash(block.Parent) {
		return fmt.Errorf("%w: block %s with parent %s comes after block %s", rows.ErrNotNext, ref, block.Parent, head)
	}
	encoded := new(tip.Rows)
	archive.PutBlock(encoded, block)
	// What was reverted stays only while it is not much.
	if err := above.Prune(ctx, int(2*min(f.depth, math.MaxInt32)), ref.Hash); err != nil {
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

// begin settles the first block of all, so that there is something for a tip to stand
// on. Where the archive got one from a call before, which failed after that, it is the first.
func (f *Follower) begin(ctx context.Context, block *starknet.Block) error {
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

// settle settles the blocks that lie deep enough.
func (f *Follower) settle(ctx context.Context, above *tip.Tip) error {
	head := above.Standing().Head.Ref()
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

// Revert takes back all blocks above an ancestor of the highest: it becomes the
// highest. One that lies below the last settled block is [ErrTooDeep].
func (f *Follower) Revert(ctx context.Context, ancestor chain.Ref) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	above := f.tip.Load()
	if above == nil {
		return fmt.Errorf("%w: block %s", tip.ErrUnknownBlock, ancestor)
	}
	err := above.SetHead(ctx, ancestor.Hash, chain.Ref{}, chain.Ref{})
	if errors.Is(err, tip.ErrUnknownBlock) {
		return fmt.Errorf("%w: to block %s, settled is %s", ErrTooDeep, ancestor, f.archive.Span().Last)
	}
	return err
}
