package query

import (
	"context"
	"slices"

	"ashlar/evm/pool"

	"github.com/ethereum/go-ethereum/core/types"
)

// returnedBlocks are as many blocks as give their transactions back to the pool after
// a reorganization. After one that is deeper the pool would be full of the first.
const returnedBlocks = 64

// KeepPool tells the chain's pool of every new head, until ctx is done. What a
// reorganization drops waits again, as far as the new branch does not have it.
func (c *Chain) KeepPool(ctx context.Context) error {
	var before *View
	return c.EachMove(ctx, func(ctx context.Context) error {
		view, err := c.View()
		if err == nil && before != view {
			err = c.resetPool(ctx, before, view)
			before = view
		}
		return err
	})
}

// resetPool tells the pool of the head of a view that comes after another, nil for none.
func (c *Chain) resetPool(ctx context.Context, before, view *View) error {
	header, err := view.Header(ctx, view.head.Number)
	if err != nil {
		return err
	}
	var returned types.Transactions
	if before != nil {
		if returned, err = c.returned(ctx, before, view); err != nil {
			return err
		}
	}
	return c.Pool().Reset(ctx, pool.Head{Header: header.Header, State: view.State(view.head.Number)}, returned)
}

// returned are the transactions of the blocks that a reorganization dropped, in the
// order in which they were included.
func (c *Chain) returned(ctx context.Context, before, view *View) (returned types.Transactions, err error) {
	changes, err := c.Changes(ctx, before, view)
	if err != nil {
		return nil, err
	}
	dropped := 0 // they come first, and the newest of them
	for dropped < len(changes) && changes[dropped].Dropped {
		dropped++
	}
	for _, change := range slices.Backward(changes[max(0, dropped-returnedBlocks):dropped]) {
		body, err := change.View.Body(ctx, change.Block.Number, nil)
		if err != nil {
			return nil, err
		}
		for i := range body.Len() {
			raw, err := body.Transaction(i)
			if err != nil {
				return nil, err
			}
			tx := new(types.Transaction)
			if err := tx.UnmarshalBinary(raw); err != nil {
				return nil, err
			}
			returned = append(returned, tx)
		}
	}
	return returned, nil
}
