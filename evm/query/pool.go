package query

import (
	"context"
	"slices"

	"ashlar/evm/pool"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/core/types"
)

// returnedBlocks is the depth of the deepest reorganization after which dropped transactions
// return to the pool. A deeper one would fill the pool.
const returnedBlocks = 64

// AwaitPool returns the pool once RunPool has moved it to the current head or to a later one, or after the limit of
// [pool.Pool.AwaitHead]. It returns nil if the chain accepts no transactions.
func (c *Chain) AwaitPool(ctx context.Context) (*pool.Pool, error) {
	waiting := c.Pool()
	if waiting == nil {
		return nil, nil
	}
	first, err := c.View()
	if err != nil {
		return waiting, nil // no head yet: the pool waits for the first one
	}
	reached := func(head *types.Header) bool {
		// The view is another one after a reorganization. That a pool between both heads is on the same branch is not checked: if
		// not, it is about to leave the other one.
		now, err := c.View()
		number := head.Number.Uint64()
		return err == nil && (head.Hash() == now.head.Hash || first.head.Number < number && number <= now.head.Number)
	}
	if head := waiting.Head(); head == nil || reached(head) || waiting.Patience() <= 0 {
		return waiting, nil // without giving the slot away, for which the call would have to wait again
	}
	return waiting, limit.Yield(ctx, func() error { return waiting.AwaitHead(ctx, reached) })
}

// RunPool resets the chain's pool at every new head, until ctx is done. Transactions
// dropped by a reorganization return to the pool unless the new branch includes them. It
// calls reset, if not nil, after each reset. When it is called again after an error, it continues from where it was.
func (c *Chain) RunPool(ctx context.Context, reset func()) error {
	var adapted *View
	return c.EachMove(ctx, func(ctx context.Context) error {
		view, err := c.View()
		if err == nil && adapted != view {
			if err = c.resetPool(ctx, view); err == nil {
				adapted = view
			}
		}
		if err == nil && reset != nil {
			reset()
		}
		return err
	})
}

// resetPool resets the pool to the head of a view.
func (c *Chain) resetPool(ctx context.Context, view *View) error {
	header, err := view.Header(ctx, view.head.Number)
	if err != nil {
		return err
	}
	before := c.pooled
	c.pooled = nil // if what was dropped since cannot be read, the pool follows without
	var returned types.Transactions
	if before != nil {
		if returned, err = c.returned(ctx, before, view); err != nil {
			return err
		}
	}
	c.pooled = view
	return c.Pool().Reset(ctx, pool.Head{Header: header.Header, State: view.State(view.head.Number)}, returned)
}

// returned returns the transactions of blocks dropped by a reorganization, in the order of
// their inclusion.
func (c *Chain) returned(ctx context.Context, before, view *View) (returned types.Transactions, err error) {
	changes, err := c.Changes(ctx, before, view)
	if err != nil {
		return nil, err
	}
	dropped := 0 // dropped blocks come first, newest first
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
