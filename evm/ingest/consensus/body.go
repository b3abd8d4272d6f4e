package consensus

import (
	"context"
	"errors"

	"ashlar/evm/archive"
	"ashlar/evm/source/engine"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
)

// Body implements [engine.Chain].
func (c *Chain) Body(ctx context.Context, hash common.Hash) (*engine.Body, error) {
	history, number, err := c.follower.Locate(ctx, hash)
	if errors.Is(err, tip.ErrUnknownBlock) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readBody(ctx, history, number)
}

// BodyAt implements [engine.Chain].
func (c *Chain) BodyAt(ctx context.Context, number uint64) (body *engine.Body, above bool, err error) {
	history, head := c.follower.Head()
	if number > head {
		return nil, true, nil
	}
	body, err = readBody(ctx, history, number)
	return body, false, err
}

// readBody returns the body of a block, or nil if the history begins after it.
func readBody(ctx context.Context, history *archive.History, number uint64) (*engine.Body, error) {
	if history.CheckBlock(number) != nil {
		return nil, nil
	}
	stored, err := history.Body(ctx, number, nil)
	if pruned := (*archive.Pruned)(nil); errors.As(err, &pruned) { // meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	body := &engine.Body{Transactions: make([][]byte, stored.Len())}
	for i := range body.Transactions {
		if body.Transactions[i], err = stored.Transaction(i); err != nil {
			return nil, err
		}
	}
	if body.Withdrawals, err = stored.Withdrawals(); err != nil {
		return nil, err
	}
	body.AccessList, err = history.AccessList(ctx, number)
	if errors.Is(err, archive.ErrNotFound) { // from before Amsterdam
		err = nil
	}
	return body, err
}
