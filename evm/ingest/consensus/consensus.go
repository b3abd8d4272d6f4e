// Package consensus keeps a chain at the head that a consensus client determines.
//
// The client sends blocks and names the head ([engine.Chain]). A block is executed and
// fully checked when its parent is known. Blocks with missing ancestors wait in a bounded
// list. If the head itself lacks ancestors, a [Supplier], if any, fetches them from nodes.
// Fetched blocks are linked by hashes to the head that the client named, so the nodes need
// not be trusted.
//
// Blocks settle below the head only. So a block far above the head waits, too, although its
// parent is known, until the client names it or another head from which it is not as far.
//
// Calls are answered one at a time, because the client relies on their order.
package consensus

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/engine"
	"ashlar/history/tip"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Supplier fetches blocks named by hash, as [upstream.Supplier] does, which documents the
// errors.
type Supplier interface {
	Fetch(ctx context.Context, target upstream.Target) error
	Arrived()
}

// Chain is a chain driven by a consensus client. It implements [engine.Chain].
type Chain struct {
	follower *ingest.Follower
	supplier Supplier // nil if there are no nodes
	log      *slog.Logger
	changed  chan struct{} // signals that another block is wanted

	// Task, if set before Run, keeps Run going after errors.
	Task *retry.Task

	mu      sync.Mutex // held during each call
	waiting *waiting   // guarded by mu
	invalid *invalids  // guarded by mu
	deep    *deep      // guarded by mu
	wanted  *wanted    // guarded by mu; nil if the client's head was reached

	way atomic.Pointer[way] // progress to the wanted head; nil if none is wanted
	far atomic.Pointer[way] // to the highest block that was too far above the head; nil if there was none since the head moved
}

// wanted is a forkchoice whose head lacks ancestors.
type wanted struct {
	engine.Forkchoice
	stop context.CancelFunc // cancels the fetch for it; nil if none is running
}

// way is the progress to a wanted head, or to a block far above the head, in block numbers.
type way struct {
	from uint64 // the head when it was first wanted
	to   uint64 // the wanted block's number, if known
}

var _ engine.Chain = (*Chain)(nil)

// New returns a chain on top of follower. supplier may be nil.
func New(follower *ingest.Follower, supplier Supplier, log *slog.Logger) *Chain {
	return &Chain{
		follower: follower, supplier: supplier, log: log, changed: make(chan struct{}, 1),
		waiting: newWaiting(), invalid: newInvalids(), deep: newDeep(),
	}
}

// NewPayload implements [engine.Chain].
func (c *Chain) NewPayload(ctx context.Context, block *types.Block) (engine.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := block.Hash()
	if bad, ok := c.invalid.find(hash); ok {
		return bad, nil
	}
	_, err := c.follower.Find(ctx, hash)
	if err == nil {
		return valid(hash), nil
	}
	if !errors.Is(err, tip.ErrUnknownBlock) {
		return engine.Status{}, err
	}
	return c.extend(ctx, block, false)
}

func valid(hash common.Hash) engine.Status {
	return engine.Status{Verdict: engine.Valid, LatestValid: &hash}
}

// inherited is the prefix of the error for descendants of an invalid block.
const inherited = "it descends from an invalid block: "

// extend adds a new block and its waiting ancestors. If that is not possible yet, the block
// waits too. named says that the client has named it as the head.
func (c *Chain) extend(ctx context.Context, block *types.Block, named bool) (engine.Status, error) {
	path := []*types.Block{block} // youngest first
	var parent *types.Header
	for parent == nil {
		hash := path[len(path)-1].ParentHash()
		if bad, ok := c.invalid.find(hash); ok {
			bad.Why = inherited + strings.TrimPrefix(bad.Why, inherited)
			return c.reject(path, bad), nil
		}
		if c.deep.Contains(hash) {
			return c.accept(path), nil
		}
		var err error
		if parent, err = c.follower.Find(ctx, hash); err == nil {
			break
		}
		if !errors.Is(err, tip.ErrUnknownBlock) {
			return engine.Status{}, err
		}
		above := c.waiting.find(hash)
		if above == nil {
			c.waiting.put(block)
			return engine.Status{Verdict: engine.Syncing}, nil
		}
		path = append(path, above)
	}
	return c.addAll(ctx, parent, path, named)
}

// addAll adds the blocks of a path. The parent of its last element is known. If the client has
// named its first element as the head, the head moves on the way as far as it must. The final block is settled then, so
// all branches have it.
func (c *Chain) addAll(ctx context.Context, parent *types.Header, path []*types.Block, named bool) (engine.Status, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		block := path[len(path)-1]
		err := c.follower.Add(ctx, block)
		if named && errors.Is(err, ingest.ErrFarAbove) {
			if err = c.follower.MoveHead(ctx, c.log, parent.Hash()); err == nil {
				err = c.follower.Add(ctx, block)
			}
		}
		var refused *execute.CheckError
		switch {
		case errors.As(err, &refused):
			last := parent.Hash()
			if parent.Difficulty.Sign() > 0 {
				last = common.Hash{} // as specified for proof-of-work blocks
			}
			c.log.Warn("the consensus client sent an invalid block", "number", block.NumberU64(), "hash", block.Hash(), "error", err)
			return c.reject(path, engine.Status{Verdict: engine.Invalid, LatestValid: &last, Why: err.Error()}), nil
		case errors.Is(err, tip.ErrUnknownParent):
			// The parent was settled, and so was another child of it.
			return c.accept(path), nil
		case errors.Is(err, ingest.ErrFarAbove) && !named:
			return c.postpone(path, err), nil
		case err != nil:
			return engine.Status{}, err
		}
		c.waiting.remove(block.Hash())
		parent = block.Header()
	}
	return valid(parent.Hash()), nil
}

// postpone has the blocks of a path wait until the client names a later head.
func (c *Chain) postpone(path []*types.Block, why error) engine.Status {
	for i := range path {
		c.waiting.put(path[len(path)-1-i]) // oldest first
	}
	head, number := c.follower.Forkchoice().Head.Ref(), path[0].NumberU64()
	far := way{from: head.Number}
	if before := c.far.Load(); before != nil {
		far = *before
	} else {
		c.log.Warn("the consensus client sends blocks far above the head that it named; they wait until it names a later one",
			"number", number, "hash", path[0].Hash(), "head", head.Number, "error", why)
	}
	far.to = max(far.to, number)
	c.far.Store(&far)
	return engine.Status{Verdict: engine.Accepted}
}

// accept records that the blocks of a path branch off below the settled block. They do not wait:
// they can never be executed.
func (c *Chain) accept(path []*types.Block) engine.Status {
	for _, block := range path {
		c.waiting.remove(block.Hash())
		c.deep.Add(block.Hash(), struct{}{})
	}
	return engine.Status{Verdict: engine.Accepted}
}

// reject records that the blocks of a path are invalid, and why.
func (c *Chain) reject(path []*types.Block, why engine.Status) engine.Status {
	for _, block := range path {
		c.waiting.remove(block.Hash())
		c.invalid.put(block.Hash(), why)
	}
	return why
}
