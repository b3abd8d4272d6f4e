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

// pendingAge is how long a pending block is reused although the pool has changed: building
// one costs as much as executing a block.
const pendingAge = 250 * time.Millisecond

// pending builds and caches the pending block of a chain.
type pending struct {
	pool *pool.Pool // nil if the chain accepts no transactions

	making *semaphore.Weighted // weight 1; unlike a mutex, waiting can be cancelled
	view   *View               // guarded by making; the last one built
	on     *tip.Branch         // guarded by making; the branch that view extends
	pooled uint64              // guarded by making; version of the pool used for view
	made   time.Time           // guarded by making
}

// SetPool sets the pool of pending transactions. It must be called before the chain is in
// use.
func (c *Chain) SetPool(p *pool.Pool) { c.pending.pool = p }

// Pool returns the pool of pending transactions, nil if the chain accepts none.
func (c *Chain) Pool() *pool.Pool { return c.pending.pool }

// withPending returns a view whose head is the pending block, built from the pool on v's
// head. Without a pool, or if this version cannot build blocks of the chain's current fork,
// it returns v.
func (v *View) withPending(ctx context.Context) (*View, error) {
	p := &v.chain.pending
	if v.pending || v.branch == nil || v.remote || p.pool == nil {
		return v, nil
	}
	if err := p.making.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.making.Release(1)
	pooled := p.pool.Version()
	if p.view != nil && p.on == v.branch && (p.pooled == pooled || time.Since(p.made) < pendingAge) {
		p.view = p.view.withForkchoice(v.safe, v.finalized)
		return p.view, nil
	}
	view, err := v.buildPending(ctx)
	if errors.Is(err, execute.ErrNotBuilt) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	p.view, p.on, p.pooled, p.made = view, v.branch, pooled, time.Now()
	return view, nil
}

// withForkchoice returns the view with other safe and finalized blocks.
func (v *View) withForkchoice(safe, finalized chain.Ref) *View {
	if v.safe == safe && v.finalized == finalized {
		return v
	}
	other := *v
	other.safe, other.finalized = safe, finalized
	return &other
}

// buildPending builds a pending block on the view's head.
func (v *View) buildPending(ctx context.Context) (*View, error) {
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
	view := v.chain.branchView(branch, false)
	view.safe, view.finalized, view.pending = v.safe, v.finalized, true
	return view, nil
}
