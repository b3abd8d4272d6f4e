package query

import (
	"context"

	"ashlar/chain"
	"ashlar/history/tip"
)

// Change is a block that was added to the chain, or was dropped by a reorganization.
type Change struct {
	Block   chain.Ref
	Dropped bool
	View    *View // contains the block
}

// EachMove calls act once and then after every change of the head, like [tip.Tip.EachMove].
// A chain without a tip, whose blocks come from files, has no changes: act is never called.
func (c *Chain) EachMove(ctx context.Context, act func(context.Context) error) error {
	switch {
	case c.tip == nil && c.remote == nil:
		<-ctx.Done()
		return nil
	case c.remote == nil:
		return c.tip.EachMove(ctx, act)
	case c.tip == nil:
		return c.remote.tip.EachMove(ctx, act)
	}
	return tip.EachMoveOf(ctx, act, c.tip, c.remote.tip)
}

// Changes returns what leads from one view of the chain to a later one: the dropped blocks,
// newest first, then the added blocks, oldest first. Blocks that were settled in between are
// found in the archive, and dropped blocks in from, which keeps them.
func (c *Chain) Changes(ctx context.Context, from, to *View) ([]Change, error) {
	if from.head == to.head {
		return nil, nil
	}
	settled := func(number uint64) (chain.Ref, error) {
		header, err := c.history.Header(ctx, number)
		if err != nil {
			return chain.Ref{}, err
		}
		return chain.Ref{Number: number, Hash: header.Hash}, nil
	}
	var changes []Change
	if from.branch == nil || to.branch == nil {
		for number := from.head.Number + 1; number <= to.head.Number; number++ {
			ref, err := settled(number)
			if err != nil {
				return nil, err
			}
			changes = append(changes, Change{Block: ref, View: to})
		}
		return changes, nil
	}
	dropped, added, err := tip.Difference(from.branch, to.branch, settled)
	if err != nil {
		return nil, err
	}
	for _, ref := range dropped {
		changes = append(changes, Change{Block: ref, Dropped: true, View: from})
	}
	for _, ref := range added {
		changes = append(changes, Change{Block: ref, View: to})
	}
	return changes, nil
}
