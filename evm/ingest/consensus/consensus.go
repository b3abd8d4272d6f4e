// Package consensus keeps a chain at the head that a consensus client determines.
//
// The client sends blocks and names the head ([engine.Chain]). A block is executed and
// fully checked when its parent is known. Blocks with missing ancestors wait in a bounded
// list. If the head itself lacks ancestors, a [Supplier], if any, fetches them from nodes.
// Fetched blocks are linked by hashes to the head that the client named, so the nodes need
// not be trusted.
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
}

// wanted is a forkchoice whose head lacks ancestors.
type wanted struct {
	engine.Forkchoice
	stop context.CancelFunc // cancels the fetch for it; nil if none is running
}

// way is the progress to a wanted head, in block numbers.
type way struct {
	from uint64 // the head when it was first wanted
	to   uint64 // the wanted head's number, if known
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
	return c.extend(ctx, block)
}

func valid(hash common.Hash) engine.Status {
	return engine.Status{Verdict: engine.Valid, LatestValid: &hash}
}

// inherited is the prefix of the error for descendants of an invalid block.
const inherited = "it descends from an invalid block: "

// extend adds a new block and its waiting ancestors. If that is not possible yet, the block
// waits too.
func (c *Chain) extend(ctx context.Context, block *types.Block) (engine.Status, error) {
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
	return c.addAll(ctx, parent, path)
}

// addAll adds the blocks of a path. The parent of its last element is known.
func (c *Chain) addAll(ctx context.Context, parent *types.Header, path []*types.Block) (engine.Status, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		block := path[len(path)-1]
		err := c.follower.Add(ctx, block)
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
		case err != nil:
			return engine.Status{}, err
		}
		c.waiting.remove(block.Hash())
		parent = block.Header()
	}
	return valid(parent.Hash()), nil
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
