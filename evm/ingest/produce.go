package ingest

import (
	"context"
	"math/big"

	"ashlar/evm"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/core/types"
)

// Produce builds the next block of a chain that nobody else builds, such as the
// demo's, and settles it at once. make is given the parent and the new block's
// base fee. When Produce returns the block is durable. One call at a time, and
// none while Import runs.
func (i *Importer) Produce(ctx context.Context, make func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error)) (*types.Block, []execute.LeftOut, error) {
	head, _ := i.archive.Settled()
	stored, err := i.archive.Header(ctx, head.Number)
	if err != nil {
		return nil, nil, err
	}
	parent := stored.Header
	attributes, transactions, err := make(parent, i.executor.BaseFee(parent))
	if err != nil {
		return nil, nil, err
	}
	x, leftOut, err := i.executor.Build(ctx, execute.Parent{Header: parent, State: i.latest, Ancestors: i.recent}, attributes, transactions)
	if err != nil {
		return nil, nil, err
	}
	delta, err := i.executor.Root(ctx, i.latest, parent.Root, x)
	if err != nil {
		return nil, nil, err
	}
	i.latest.executed(x)
	i.latest.rooted(delta)
	i.recent.add(x.Block)
	if err := i.settleGroup(ctx, []*evm.Delta{delta}); err != nil {
		return nil, nil, err
	}
	return x.Block, leftOut, i.sync(ctx)
}
