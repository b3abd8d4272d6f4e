package consensus

import (
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/evm/source/engine"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// UpdateForkchoice implements [engine.Chain].
func (c *Chain) UpdateForkchoice(ctx context.Context, to engine.Forkchoice) (engine.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.Head == (common.Hash{}) {
		return engine.Status{Verdict: engine.Invalid, Why: "invalid head: its hash is zero"}, nil
	}
	return c.update(ctx, to)
}

// update imports a head if possible, and moves to it.
func (c *Chain) update(ctx context.Context, to engine.Forkchoice) (engine.Status, error) {
	if bad, ok := c.invalid.find(to.Head); ok {
		return bad, nil
	}
	header, err := c.follower.Find(ctx, to.Head)
	if err == nil {
		return c.move(ctx, to, header)
	}
	if !errors.Is(err, tip.ErrUnknownBlock) {
		return engine.Status{}, err
	}
	if c.deep.Contains(to.Head) {
		return engine.Status{}, engine.ErrTooDeep
	}
	block := c.waiting.find(to.Head)
	if block == nil {
		c.want(to, 0)
		return engine.Status{Verdict: engine.Syncing}, nil
	}
	status, err := c.extend(ctx, block, true)
	switch {
	case err != nil:
		return status, err
	case status.Verdict == engine.Valid:
		return c.move(ctx, to, block.Header())
	case status.Verdict == engine.Accepted:
		return status, engine.ErrTooDeep
	case status.Verdict == engine.Syncing:
		c.want(to, block.NumberU64())
	}
	return status, nil
}

// want records a forkchoice whose head lacks ancestors. number is 0 if the head itself is
// unknown.
func (c *Chain) want(to engine.Forkchoice, number uint64) {
	now := c.follower.Forkchoice().Head.Ref().Number
	if c.wanted == nil {
		c.wanted = new(wanted)
		c.way.Store(&way{from: now})
		if c.supplier != nil {
			c.log.Info("the consensus client's head is not known yet", "head", to.Head)
		} else {
			c.log.Warn("the consensus client's head is not known, and no source is configured to fetch it: only the client can send it and the missing blocks below it", "head", to.Head)
		}
	}
	c.wanted.Forkchoice = to
	before := c.way.Load()
	c.way.Store(&way{from: before.from, to: max(before.to, number, now)})
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// wantNothing cancels the fetch, because the client has named another head.
func (c *Chain) wantNothing() {
	if c.wanted != nil && c.wanted.stop != nil {
		c.wanted.stop()
	}
	c.wanted = nil
	c.way.Store(nil)
}

// move makes a known block the head, if the rest of the forkchoice is consistent.
func (c *Chain) move(ctx context.Context, to engine.Forkchoice, header *types.Header) (engine.Status, error) {
	before := c.follower.Forkchoice()
	head := chain.Ref{Number: header.Number.Uint64(), Hash: to.Head}
	if final := before.Finalized; final != (chain.Ref{}) && head.Number < final.Number {
		// A head below the final block may be ignored: the client is catching up.
		on, err := c.follower.On(ctx, before.Head, head)
		if on || err != nil {
			return valid(to.Head), err
		}
	}
	branch, err := c.follower.Branch(to.Head)
	if errors.Is(err, tip.ErrUnknownBlock) {
		return engine.Status{}, engine.ErrTooDeep
	}
	if err != nil {
		return engine.Status{}, err
	}
	if before.Finalized != (chain.Ref{}) {
		on, err := c.follower.On(ctx, branch, before.Finalized)
		if err != nil {
			return engine.Status{}, err
		}
		if !on {
			return engine.Status{}, engine.ErrTooDeep
		}
	}
	safe, finalized, err := c.tags(ctx, branch, to, before)
	if err != nil {
		return engine.Status{}, err
	}
	err = c.follower.SetHead(ctx, to.Head, safe, finalized)
	if errors.Is(err, tip.ErrUnknownBlock) { // dropped meanwhile, because another branch settled
		return engine.Status{}, engine.ErrTooDeep
	}
	if err != nil {
		return engine.Status{}, err
	}
	c.wantNothing()
	if head != before.Head.Ref() {
		c.far.Store(nil)
	}
	if c.supplier != nil {
		c.supplier.Arrived()
	}
	c.follower.LogReorganization(ctx, c.log, branch, before.Head.Refs())
	return valid(to.Head), nil
}

// tags returns the safe and finalized blocks to set; zero means no change. The finalized
// block never moves back.
func (c *Chain) tags(ctx context.Context, branch *tip.Branch, to engine.Forkchoice, before tip.Forkchoice) (safe, finalized chain.Ref, err error) {
	if finalized, err = c.ancestor(ctx, branch, to.Finalized); err != nil {
		return safe, finalized, err
	}
	if safe, err = c.ancestor(ctx, branch, to.Safe); err != nil {
		return safe, finalized, err
	}
	final := before.Finalized
	if finalized.Number > final.Number || final == (chain.Ref{}) {
		final = finalized
	}
	if safe == (chain.Ref{}) {
		on, err := c.follower.On(ctx, branch, before.Safe)
		if err != nil {
			return safe, finalized, err
		}
		switch {
		case before.Safe == (chain.Ref{}):
			// the client has never named a safe block
		case on:
			safe = before.Safe
		default:
			safe = branch.Settled() // the old safe block is not on the branch
		}
	}
	if safe != (chain.Ref{}) && safe.Number < final.Number {
		safe = final
	}
	return safe, final, nil
}

// ancestor finds a block of a branch by its hash, and returns zero for a zero hash. The
// error is engine.ErrInconsistent if the block is not on the branch.
func (c *Chain) ancestor(ctx context.Context, branch *tip.Branch, hash common.Hash) (chain.Ref, error) {
	if hash == (common.Hash{}) {
		return chain.Ref{}, nil
	}
	header, err := c.follower.Find(ctx, hash)
	if errors.Is(err, tip.ErrUnknownBlock) {
		return chain.Ref{}, engine.ErrInconsistent
	}
	if err != nil {
		return chain.Ref{}, err
	}
	ref := chain.Ref{Number: header.Number.Uint64(), Hash: hash}
	if ref.Number > branch.Ref().Number {
		return chain.Ref{}, engine.ErrInconsistent
	}
	on, err := c.follower.On(ctx, branch, ref)
	if err == nil && !on {
		err = engine.ErrInconsistent
	}
	return ref, err
}
