package rollup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	archive "ashlar/archive/rollup"
	"ashlar/archive/rows"
	"ashlar/chain"
	"ashlar/chain/rollup"
	"ashlar/tip"

	"github.com/ethereum/go-ethereum/common"
)

// DefaultDepth is how many blocks below the head stay in the tip. A rollup's
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
	tip     *tip.Tip
	depth   uint64

	writing sync.Mutex // held while the tip or the archive changes
}

// NewFollower makes the follower of a chain whose archive has its first block.
func NewFollower(a *archive.Archive, t *tip.Tip, depth uint64) *Follower {
	return &Follower{archive: a, tip: t, depth: depth}
}

// Held names the lowest and the highest block that are held.
func (f *Follower) Held(ctx context.Context) (first, head chain.Ref, ok bool, err error) {
	span := f.archive.Span()
	header, err := f.archive.Settled(span).Header(ctx, span.First)
	if err != nil {
		return first, head, false, err
	}
	return header.Ref(), f.tip.Standing().Head.Ref(), true, nil
}

// Hash is that of the block with a number from the lowest to the highest.
func (f *Follower) Hash(ctx context.Context, number uint64) (common.Hash, error) {
	if ref, ok := f.tip.Standing().Head.At(number); ok {
		return ref.Hash, nil
	}
	header, err := f.archive.Settled(f.archive.Span()).Header(ctx, number)
	if err != nil {
		return common.Hash{}, err
	}
	return common.Hash(header.Hash), nil
}

// Append takes the child of the highest block, which becomes the highest. On
// return it is durable, and settled is what lies deep enough below it.
func (f *Follower) Append(ctx context.Context, block *rollup.Block) error {
	if err := archive.Fits(block); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	ref := block.Ref()
	if head := f.tip.Standing().Head.Ref(); head.Hash != common.Hash(block.Parent) {
		return fmt.Errorf("%w: block %s with parent %s comes after block %s", rows.ErrNotNext, ref, block.Parent, head)
	}
	encoded := new(tip.Rows)
	archive.PutBlock(encoded, block)
	if err := f.tip.Add(ctx, ref, common.Hash(block.Parent), encoded); err != nil {
		return err
	}
	if err := f.tip.SetHead(ctx, ref.Hash, chain.Ref{}, chain.Ref{}); err != nil {
		return err
	}
	return f.settle(ctx)
}

// settle settles the blocks that lie deep enough.
func (f *Follower) settle(ctx context.Context) error {
	head := f.tip.Standing().Head.Ref()
	if head.Number <= f.depth {
		return nil
	}
	blocks := f.tip.Unsettled(head.Number - f.depth)
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
	return f.tip.Settled(ctx, blocks[len(blocks)-1].Ref())
}

// Revert takes back all blocks above an ancestor of the highest: it becomes the
// highest. One that lies below the last settled block is [ErrTooDeep].
func (f *Follower) Revert(ctx context.Context, ancestor chain.Ref) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	err := f.tip.SetHead(ctx, ancestor.Hash, chain.Ref{}, chain.Ref{})
	if errors.Is(err, tip.ErrUnknownBlock) {
		return fmt.Errorf("%w: to block %s, settled is %s", ErrTooDeep, ancestor, f.archive.Span().Last)
	}
	return err
}
