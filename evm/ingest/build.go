package ingest

import (
	"context"
	"math/big"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/core/types"
)

// Contents chooses what a new block holds, given its parent and its base fee.
type Contents func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error)

// built is a new block with its state root.
type built struct {
	executed *execute.Executed
	delta    *evm.Delta
	leftOut  []execute.LeftOut
}

// build builds the block after a parent.
func build(ctx context.Context, e *execute.Executor, parent execute.Parent, contents Contents) (b built, err error) {
	attributes, transactions, err := contents(parent.Header, e.BaseFee(parent.Header))
	if err != nil {
		return b, err
	}
	if b.executed, b.leftOut, err = e.Build(ctx, parent, attributes, transactions); err != nil {
		return b, err
	}
	b.delta, err = e.Root(ctx, parent.State, parent.Header.Root, b.executed)
	return b, err
}

// Build builds the next block and settles it at once, for the past of a chain that
// nobody else builds, such as the demo's. When Build returns the block is durable. It
// must not be called concurrently, or while Import runs.
func (i *Importer) Build(ctx context.Context, contents Contents) (*types.Block, []execute.LeftOut, error) {
	head, _ := i.archive.Settled()
	header, err := i.archive.Header(ctx, head.Number)
	if err != nil {
		return nil, nil, err
	}
	b, err := build(ctx, i.executor, execute.Parent{Header: header.Header, State: i.latest, Ancestors: i.recent}, contents)
	if err != nil {
		return nil, nil, err
	}
	i.latest.executed(b.executed)
	i.latest.rooted(b.delta, true)
	i.recent.add(b.delta.Block)
	if err := i.settleGroup(ctx, []*evm.Delta{b.delta}); err != nil {
		return nil, nil, err
	}
	return b.delta.Block, b.leftOut, i.sync(ctx)
}

// Build builds the block after the head, adds it and makes it the head, for a chain
// that nobody else builds. Like [Follower.Add], it fails if the tip is full of blocks that
// cannot be settled.
func (f *Follower) Build(ctx context.Context, contents Contents) (*types.Block, []execute.LeftOut, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	head := f.tip.Forkchoice().Head.Ref()
	if err := f.settleBefore(ctx, head.Hash, head.Number+1); err != nil {
		return nil, nil, err
	}
	parent, history, err := f.parent(ctx, head.Hash)
	if err != nil {
		return nil, nil, err
	}
	b, err := build(ctx, f.executor, parent, contents)
	if err != nil {
		return nil, nil, err
	}
	if err := f.add(ctx, parent, history, b.delta); err != nil {
		return nil, nil, err
	}
	return b.delta.Block, b.leftOut, f.tip.SetHead(ctx, b.delta.Block.Hash(), chain.Ref{}, chain.Ref{})
}
