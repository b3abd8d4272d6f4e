package query

import (
	"context"

	"ashlar/pool"
)

// KeepPool tells the chain's pool of every new head, until ctx is done.
func (c *Chain) KeepPool(ctx context.Context) error {
	var before *View
	for {
		moved := c.tip.Moved()
		view, err := c.View()
		if err == nil && before != view {
			err = c.resetPool(ctx, view)
			before = view
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Chain) resetPool(ctx context.Context, view *View) error {
	header, err := view.Header(ctx, view.head.Number)
	if err != nil {
		return err
	}
	return c.Pool().Reset(ctx, pool.Head{Header: header.Header, State: view.State(view.head.Number)}, nil)
}
