// Package consensus keeps a chain where a consensus client says that its head is.
//
// The client sends blocks and says which of them is the head ([engine.Chain]). A
// block is executed, and all of it checked, when its parent is there; one whose
// ancestors are missing waits, in bounded number, until they come. When the head
// itself lacks ancestors they are fetched from nodes, where there is a [Supplier]:
// what comes from there is bound by hashes to the head that the client named, so
// nodes are not relied on for anything.
//
// Calls are answered one by one, as the client must see them in order.
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

// Supplier brings in blocks that are named by their hash, as [upstream.Supplier] does,
// where more is said of its errors.
type Supplier interface {
	Fetch(ctx context.Context, target upstream.Target) error
	Arrived()
}

// Chain is a chain that a consensus client drives. It implements [engine.Chain].
type Chain struct {
	follower *ingest.Follower
	supplier Supplier // nil where no node is asked
	log      *slog.Logger
	changed  chan struct{} // receives when another block is wanted

	// Task, if set before Run, keeps Run going after errors.
	Task *retry.Task

	mu      sync.Mutex // held while a call is answered
	waiting *waiting   // guarded by mu
	invalid *invalids  // guarded by mu
	wanted  *wanted    // guarded by mu; nil where the head is where it was told

	way atomic.Pointer[way] // to the wanted head; nil where none is wanted
}

// wanted is a forkchoice that was told, and whose head lacks ancestors.
type wanted struct {
	engine.Forkchoice
	stop context.CancelFunc // what is fetched for it; nil when nothing is
}

// way is the way to a wanted head, in numbers of blocks.
type way struct {
	from uint64 // the head when it was first wanted
	to   uint64 // its number, as far as that is known
}

var _ engine.Chain = (*Chain)(nil)

// New makes the chain that is kept by a follower. supplier may be nil.
func New(follower *ingest.Follower, supplier Supplier, log *slog.Logger) *Chain {
	return &Chain{
		follower: follower, supplier: supplier, log: log, changed: make(chan struct{}, 1),
		waiting: newWaiting(), invalid: newInvalids(),
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

// inherited is said of blocks that come after an invalid one.
const inherited = "it comes after an invalid block: "

// extend brings in a block that is not there, with those of its ancestors that
// wait. Where that is not possible the block waits too.
func (c *Chain) extend(ctx context.Context, block *types.Block) (engine.Status, error) {
	path := []*types.Block{block} // the youngest first
	var parent *types.Header
	for parent == nil {
		hash := path[len(path)-1].ParentHash()
		if bad, ok := c.invalid.find(hash); ok {
			bad.Why = inherited + strings.TrimPrefix(bad.Why, inherited)
			return c.reject(path, bad), nil
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

// addAll adds the blocks of a path, the last of which has a parent that is there.
func (c *Chain) addAll(ctx context.Context, parent *types.Header, path []*types.Block) (engine.Status, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		block := path[len(path)-1]
		err := c.follower.Add(ctx, block)
		var refused *execute.CheckError
		switch {
		case errors.As(err, &refused):
			last := parent.Hash()
			if parent.Difficulty.Sign() > 0 {
				last = common.Hash{} // as the specification has it for blocks with proof of work
			}
			c.log.Warn("the consensus client sent an invalid block", "number", block.NumberU64(), "hash", block.Hash(), "because", err)
			return c.reject(path, engine.Status{Verdict: engine.Invalid, LatestValid: &last, Why: err.Error()}), nil
		case errors.Is(err, tip.ErrUnknownParent):
			// The parent is settled, and another block behind it as well.
			c.waiting.put(path[0])
			return engine.Status{Verdict: engine.Accepted}, nil
		case err != nil:
			return engine.Status{}, err
		}
		c.waiting.remove(block.Hash())
		parent = block.Header()
	}
	return valid(parent.Hash()), nil
}

// reject remembers that the blocks of a path are invalid, and why.
func (c *Chain) reject(path []*types.Block, why engine.Status) engine.Status {
	for _, block := range path {
		c.waiting.remove(block.Hash())
		c.invalid.put(block.Hash(), why)
	}
	return why
}
