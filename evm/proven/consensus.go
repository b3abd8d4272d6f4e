package proven

import (
	"context"
	"fmt"
	"sync"

	"ashlar/chain"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Consensus is a consensus client, or a light client, that names the head. It implements
// [engine.Chain] without executing anything, so it never says that a block is valid: every
// answer is SYNCING. A consensus client then stays optimistic: it follows the chain, names its
// head in every slot, and neither attests nor proposes blocks.
//
// A payload that a consensus client sends saves fetching the block. Everything else is fetched
// from nodes and proven for the head that the client has named.
type Consensus struct {
	remote *Remote
	client string // what names the head, for errors

	mu      sync.Mutex
	now     engine.Forkchoice // guarded by mu; zero before the first
	changed chan struct{}     // guarded by mu; closed when now changes
}

var _ engine.Chain = (*Consensus)(nil)

// NewConsensus returns a client of a remote chain that has not called yet. Errors call it
// "the CLIENT".
func NewConsensus(r *Remote, client string) *Consensus {
	return &Consensus{remote: r, client: client, changed: make(chan struct{})}
}

// NewPayload implements [engine.Chain]. The block has the hash that the client has named, so
// its body and header belong together.
func (c *Consensus) NewPayload(_ context.Context, block *types.Block) (engine.Status, error) {
	delta, err := c.remote.withSenders(block)
	if err != nil {
		return engine.Status{Verdict: engine.Invalid, Why: err.Error()}, nil
	}
	c.remote.recent.Add(block.Hash(), delta)
	return engine.Status{Verdict: engine.Syncing}, nil
}

// UpdateForkchoice implements [engine.Chain].
func (c *Consensus) UpdateForkchoice(_ context.Context, to engine.Forkchoice) (engine.Status, error) {
	if to.Head == (common.Hash{}) {
		return engine.Status{Verdict: engine.Invalid, Why: "invalid head: its hash is zero"}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if to != c.now {
		c.now = to
		close(c.changed)
		c.changed = make(chan struct{})
	}
	return engine.Status{Verdict: engine.Syncing}, nil
}

// Body implements [engine.Chain]. Bodies are kept by the nodes only.
func (c *Consensus) Body(context.Context, common.Hash) (*engine.Body, error) { return nil, nil }

// BodyAt implements [engine.Chain].
func (c *Consensus) BodyAt(context.Context, uint64) (*engine.Body, bool, error) {
	return nil, true, nil
}

// forkchoice returns what the client has named last, and a channel that is closed when it names
// something else.
func (c *Consensus) forkchoice() (engine.Forkchoice, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.changed
}

// named returns the head that the client has named.
func (h *Head) named(ctx context.Context) (named Forkchoice, err error) {
	now, _ := h.config.Consensus.forkchoice()
	if now.Head == (common.Hash{}) {
		return named, fmt.Errorf("the %s has not named a head", h.config.Consensus.client)
	}
	for _, block := range []struct {
		name string
		hash common.Hash
		ref  *chain.Ref
	}{{"head", now.Head, &named.Head}, {"safe block", now.Safe, &named.Safe}, {"finalized block", now.Finalized, &named.Finalized}} {
		if block.hash == (common.Hash{}) {
			continue
		}
		delta, err := h.remote.blockOf(ctx, block.hash)
		if err != nil {
			return named, fmt.Errorf("%s of the %s: %w", block.name, h.config.Consensus.client, err)
		}
		*block.ref = chain.Ref{Number: delta.Block.NumberU64(), Hash: block.hash}
	}
	return named, nil
}
