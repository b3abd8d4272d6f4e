package query

import (
	"context"

	"ashlar/chain"
	"ashlar/history/tip"
)

// Change is a block that has come into the chain, or has been dropped from it by a
// reorganization.
type Change struct {
	Block   chain.Ref
	Dropped bool
	View    *View // in which the block is
}

// EachMove calls act at once and then after every move of the head, as
// [tip.Tip.EachMove] does. A chain without a tip, whose blocks come from files, does
// not move: nothing is called.
func (c *Chain) EachMove(ctx context.Context, act func(context.Context) error) error {
	if c.tip == nil {
		<-ctx.Done()
		return nil
	}
	return c.tip.EachMove(ctx, act)
}

// Changes is what leads from one view of the chain to a later one: the blocks that
// were dropped, newest first, and then those that came, oldest first. What was
// settled in between is found in the archive, and what was dropped in the view
// from, which keeps it.
func (c *Chain) Changes(ctx context.Context, from, to *View) ([]Change, error) {
	if from.head == to.head {
		return nil, nil
	}
	settled := func(number uint64) (chain.Ref, error) {
		header, err := c.archive.Header(ctx, number)
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
