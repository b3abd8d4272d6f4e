package query

import (
	"context"
	"errors"
	"math/big"
	"time"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/pool"
	"ashlar/history/tip"

	"golang.org/x/sync/semaphore"
)

// pendingAge is for how long a pending block is shown that does not have the very
// latest transactions: making one takes as long as executing a block.
const pendingAge = 250 * time.Millisecond

// pending makes the pending blocks of a chain.
type pending struct {
	pool *pool.Pool // nil where nothing waits to be included

	making *semaphore.Weighted // one place; those who wait for it may give up
	view   *View               // guarded by making; the last that was made
	on     *tip.Branch         // guarded by making; what it was made on
	pooled uint64              // guarded by making; the pool's version then
	made   time.Time           // guarded by making
}

// SetPool says which transactions wait to be included in the chain's next block.
// It is called before the chain is asked anything.
func (c *Chain) SetPool(p *pool.Pool) { c.pending.pool = p }

// Pool is what waits to be included; nil where the chain takes no transactions.
func (c *Chain) Pool() *pool.Pool { return c.pending.pool }

// withPending is the view with the pending block as its head: built on the view's
// head from what waits in the pool. Where nothing waits because there is no pool, or
// blocks of the chain's time are not built here, it is the view itself.
func (v *View) withPending(ctx context.Context) (*View, error) {
	p := &v.chain.pending
	if v.pending || v.branch == nil || p.pool == nil {
		return v, nil
	}
	if err := p.making.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.making.Release(1)
	pooled := p.pool.Version()
	if p.view != nil && p.on == v.branch && (p.pooled == pooled || time.Since(p.made) < pendingAge) {
		return p.view, nil
	}
	view, err := v.imagine(ctx)
	if errors.Is(err, execute.ErrNotBuilt) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	p.view, p.on, p.pooled, p.made = view, v.branch, pooled, time.Now()
	return view, nil
}

// imagine builds the pending block on the view's head.
func (v *View) imagine(ctx context.Context) (*View, error) {
	header, err := v.Header(ctx, v.head.Number)
	if err != nil {
		return nil, err
	}
	e := v.Executor()
	parent := execute.Parent{
		Header: header.Header, State: v.State(v.head.Number),
		Ancestors: archive.Ancestors{History: v.history}, TotalDifficulty: header.TotalDifficulty,
	}
	attributes := execute.Attributes{
		Timestamp: max(uint64(time.Now().Unix()), header.Time+1), FeeRecipient: header.Coinbase, GasLimit: header.GasLimit,
	}
	waiting := v.chain.pending.pool.Executable(e.BaseFee(header.Header), attributes.GasLimit)
	executed, _, err := e.Build(ctx, parent, attributes, waiting)
	if err != nil {
		return nil, err
	}
	delta, err := e.Root(ctx, parent.State, header.Root, executed)
	if err != nil {
		return nil, err
	}
	rows := new(tip.Rows)
	if err := v.history.Encode(ctx, rows, delta, new(big.Int).Set(header.TotalDifficulty)); err != nil {
		return nil, err
	}
	branch, err := v.chain.tip.Extend(v.branch, chain.Ref{Number: v.head.Number + 1, Hash: delta.Block.Hash()}, rows)
	if err != nil {
		return nil, err
	}
	view := v.chain.branchView(branch)
	view.safe, view.finalized, view.pending = v.safe, v.finalized, true
	return view, nil
}
