package consensus

import (
	"context"
	"errors"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/engine"
)

// supplyRetry is the wait before retrying if no node has the missing blocks.
const supplyRetry = time.Second

// Run fetches missing ancestors of the heads that the client names, until ctx is done or,
// without a Task, the chain itself fails. Without a supplier it only waits.
func (c *Chain) Run(ctx context.Context) error { return c.Task.Keep(ctx, c.supplyAll) }

func (c *Chain) supplyAll(ctx context.Context) error {
	if c.supplier == nil {
		<-ctx.Done()
		return nil
	}
	for {
		for more := true; more; {
			var err error
			more, err = c.supply(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, upstream.ErrNoSupply) {
				err = c.pause(ctx)
			}
			if err != nil {
				return err
			}
			c.Task.Succeeded()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		}
	}
}

// pause waits before a retry.
func (c *Chain) pause(ctx context.Context) error {
	timer := time.NewTimer(supplyRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// supply fetches the missing ancestors of the wanted head once, and moves to that head.
// more is false if nothing was wanted.
func (c *Chain) supply(ctx context.Context) (more bool, err error) {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	target, ok := c.missing(stop)
	if !ok {
		return false, nil
	}
	err = c.supplier.Fetch(fetching, target)
	c.mu.Lock()
	defer c.mu.Unlock()
	if fetching.Err() != nil {
		return true, nil // the client named another head, or ctx is done
	}
	var invalid *upstream.InvalidError
	switch {
	case errors.As(err, &invalid):
		c.log.Warn("the consensus client's head descends from an invalid block", "number", invalid.Block.Number, "hash", invalid.Block.Hash, "error", err)
		last := invalid.LatestValid
		status := engine.Status{Verdict: engine.Invalid, LatestValid: &last, Why: err.Error()}
		c.invalid.put(invalid.Block.Hash, status)
		c.invalid.put(target.Hash, status)
		c.wantNothing() // the client gets the error when it names the head again
		return false, nil
	case err != nil && !errors.Is(err, upstream.ErrTooDeep):
		return true, err
	case c.wanted == nil:
		return false, nil
	}
	status := engine.Status{Verdict: engine.Syncing}
	if err == nil {
		status, err = c.update(ctx, c.wanted.Forkchoice)
	}
	for _, cannot := range []error{upstream.ErrTooDeep, engine.ErrTooDeep, engine.ErrInconsistent} {
		if errors.Is(err, cannot) {
			c.log.Warn("cannot follow the consensus client's forkchoice", "error", err)
			c.wantNothing()
			return false, nil
		}
	}
	if status.Verdict == engine.Invalid {
		c.wantNothing()
	}
	return status.Verdict == engine.Syncing, err
}

// missing returns the block to fetch: the first missing one below the wanted head. stop is
// called when it is no longer wanted.
func (c *Chain) missing(stop context.CancelFunc) (target upstream.Target, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		return target, false
	}
	target = upstream.Target{Hash: c.wanted.Head, Finalized: c.wanted.Finalized, Shown: c.show}
	for block := c.waiting.find(target.Hash); block != nil; block = c.waiting.find(target.Hash) {
		target.Hash = block.ParentHash()
	}
	c.wanted.stop = stop
	return target, true
}

// show makes a block on the way to the wanted head the current head, so that the progress
// is visible.
func (c *Chain) show(ctx context.Context, block chain.Ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		return nil
	}
	return c.follower.Advance(ctx, c.log, block)
}

// Sync is the progress of a chain, in block numbers.
type Sync struct{ Starting, Current, Highest uint64 }

// Sync returns the progress to the head that the client named, or to the blocks that it sends
// far above it. It returns false if that head was reached and there are no such blocks.
func (c *Chain) Sync() (Sync, bool) {
	head := c.follower.Forkchoice().Head.Ref().Number
	sync := Sync{Starting: head, Current: head, Highest: head}
	syncing := false
	for _, way := range []*way{c.way.Load(), c.far.Load()} {
		if way != nil {
			syncing = true
			sync.Starting, sync.Highest = min(sync.Starting, way.from), max(sync.Highest, way.to)
		}
	}
	return sync, syncing
}
