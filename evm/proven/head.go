package proven

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/source/node"
	"ashlar/history/tip"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// advanceTime is the most time for one step towards a head.
const advanceTime = time.Minute

// Watcher is what is known of the nodes, as an [upstream.Pool] has it.
type Watcher interface {
	Status() []upstream.Status
	Changed() <-chan struct{}
	// AskEach asks all usable nodes.
	AskEach(ctx context.Context, c upstream.Call) []upstream.Answer
	SetAside(node string, why error)
}

// HeadConfig configures a head.
type HeadConfig struct {
	Watcher Watcher
	// Quorum is the number of nodes that must agree on a head, and on what is safe and
	// final.
	Quorum int
	Log    *slog.Logger
	// Consensus names the head instead of the nodes, if it is not nil.
	Consensus *Consensus
	// Base is a block from which the head must descend, and with which the tip begins; zero
	// if there is none.
	Base chain.Ref
	// Settled, if not nil, returns the last block that was executed here. Nodes with another
	// one are set aside.
	Settled func() chain.Ref
	// Needed, if not nil, reports whether a head of the nodes with a number is of use. If it
	// is not, the head stays.
	Needed func(number uint64) bool
}

// Head follows the head that the nodes agree on, or that a consensus client names. Which head
// is right cannot be proven; that its blocks are its ancestors, with their transactions and
// receipts, is.
type Head struct {
	config  HeadConfig
	remote  *Remote
	tip     *tip.Tip
	arrived chan struct{} // closed when there is a first head
	first   sync.Once
	problem atomic.Pointer[string] // why the head stays; nil if it follows
	// Run alone uses the fields below.
	sound    map[string]uint64 // nodes on our chain, and the block up to which that was checked
	anchored bool              // a block was made the first settled one
}

// NewHead returns the head of a remote chain. The tip is that of [OpenTip].
func NewHead(r *Remote, t *tip.Tip, config HeadConfig) *Head {
	h := &Head{config: config, remote: r, tip: t, arrived: make(chan struct{}), sound: make(map[string]uint64)}
	if config.Base.Number > 0 {
		r.spine.raise(config.Base, nil)
		h.anchored = true
	}
	return h
}

// Arrived returns a channel that is closed when there is a first head.
func (h *Head) Arrived() <-chan struct{} { return h.arrived }

// arrive records that there is a head.
func (h *Head) arrive() { h.first.Do(func() { close(h.arrived) }) }

// Problem returns why the head stays where it is, "" if it follows.
func (h *Head) Problem() string {
	if why := h.problem.Load(); why != nil {
		return *why
	}
	return ""
}

// Run follows the head until ctx is done.
func (h *Head) Run(ctx context.Context) error {
	for {
		changed := h.config.Watcher.Changed()
		var named <-chan struct{}
		if h.config.Consensus != nil {
			_, named = h.config.Consensus.forkchoice()
		}
		err := h.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		h.note(err)
		select {
		case <-changed:
		case <-named:
		case <-ctx.Done():
			return nil
		}
	}
}

// note records why the head stays.
func (h *Head) note(err error) {
	before := h.Problem()
	if err == nil {
		h.problem.Store(nil)
		return
	}
	why := err.Error()
	h.problem.Store(&why)
	if before == "" {
		h.config.Log.Warn("the head stays", "because", why)
	}
}

// Forkchoice is what nodes say about the end of the chain.
type Forkchoice struct{ Head, Safe, Finalized chain.Ref }

// claim is what a node says.
type claim struct {
	Forkchoice
	node string
}

// step moves the head to the one that the nodes agree on.
func (h *Head) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	choices, err := h.choices(ctx)
	if err != nil {
		return err
	}
	if h.config.Needed != nil && !slices.ContainsFunc(choices, func(f Forkchoice) bool { return h.config.Needed(f.Head.Number) }) {
		h.arrive()
		return nil
	}
	for _, choice := range choices {
		if err = h.advance(ctx, choice); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// choices returns the heads to try, best first.
func (h *Head) choices(ctx context.Context) ([]Forkchoice, error) {
	if h.config.Consensus == nil {
		return h.elect(ctx)
	}
	named, err := h.named(ctx)
	return []Forkchoice{named}, err
}

// claims returns what the usable nodes say.
func (h *Head) claims(ctx context.Context) (all []claim) {
	h.identify(ctx)
	for _, s := range h.config.Watcher.Status() {
		if _, sound := h.sound[s.Name]; s.Usable && sound {
			all = append(all, claim{Forkchoice{Head: s.Head.Ref, Safe: s.Head.Safe, Finalized: s.Head.Finalized}, s.Name})
		}
	}
	return all
}

// identifiedBlocks is how many blocks are executed here before nodes are asked again whether
// they have them.
const identifiedBlocks = 8192

// identify sets nodes aside that have another genesis, or another block than the last one that
// was executed here.
func (h *Head) identify(ctx context.Context) {
	h.compare(ctx, h.remote.spine.genesis, "genesis", func(name string) bool {
		_, known := h.sound[name]
		return known
	})
	if h.config.Settled == nil {
		return
	}
	settled := h.config.Settled()
	h.compare(ctx, settled, fmt.Sprintf("block %d", settled.Number), func(name string) bool {
		checked, known := h.sound[name]
		return !known || settled.Number == 0 || checked > 0 && settled.Number < checked+identifiedBlocks
	})
}

// compare asks nodes for the hash of a block of ours, and sets those aside that have another
// one. Nodes that are known are not asked.
func (h *Head) compare(ctx context.Context, ours chain.Ref, what string, known func(node string) bool) {
	skip := func(s upstream.Status) bool { return !s.Usable || known(s.Name) }
	if !slices.ContainsFunc(h.config.Watcher.Status(), func(s upstream.Status) bool { return !skip(s) }) {
		return
	}
	for _, answer := range h.hashes(ctx, ours.Number) {
		if answer.hash == ours.Hash {
			h.sound[answer.node] = ours.Number
			continue
		}
		delete(h.sound, answer.node)
		h.config.Watcher.SetAside(answer.node, fmt.Errorf("its %s is %#x, expected %#x", what, answer.hash, ours.Hash))
	}
}

// nodeHash is the hash that a node has at a number.
type nodeHash struct {
	node string
	hash common.Hash
}

// hashes asks all usable nodes which block they have at a number.
func (h *Head) hashes(ctx context.Context, number uint64) (all []nodeHash) {
	q := newQuestion(upstream.Blocks, number, "eth_getBlockByNumber", hexutil.Uint64(number), false)
	q.Check = func(answer json.RawMessage) error {
		_, err := node.ParseHeader(answer)
		return fault(err)
	}
	for _, answer := range h.config.Watcher.AskEach(ctx, q.Call) {
		if answer.Err != nil {
			continue
		}
		if header, err := node.ParseHeader(answer.Result); err == nil {
			all = append(all, nodeHash{answer.Node, header.Hash()})
		}
	}
	return all
}

// elect returns the heads to try, best first: with a quorum the one that it agrees on, else
// that of each node.
func (h *Head) elect(ctx context.Context) ([]Forkchoice, error) {
	claims := h.claims(ctx)
	if len(claims) < h.config.Quorum {
		return nil, fmt.Errorf("%d of %d nodes can be used, %d must agree", len(claims), len(h.config.Watcher.Status()), h.config.Quorum)
	}
	if h.config.Quorum == 1 {
		slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(b.Head.Number, a.Head.Number) })
		choices := make([]Forkchoice, len(claims))
		for i, c := range claims {
			choices[i] = c.Forkchoice
		}
		return choices, nil
	}
	heads := make([]uint64, len(claims))
	for i, c := range claims {
		heads[i] = c.Head.Number
	}
	for _, number := range chain.Heights(heads, h.config.Quorum) {
		votes := h.votes(ctx, claims, number)
		if hash, ok := chain.Elected(votes, h.config.Quorum); ok {
			return []Forkchoice{elected(claims, votes, chain.Ref{Number: number, Hash: hash}, h.config.Quorum)}, nil
		}
	}
	return nil, fmt.Errorf("no agreement: %d nodes must have the same head", h.config.Quorum)
}

// votes returns which block each node has at a number.
func (h *Head) votes(ctx context.Context, claims []claim, number uint64) []common.Hash {
	votes := make([]common.Hash, len(claims))
	higher := false
	for i, c := range claims {
		if c.Head.Number == number {
			votes[i] = c.Head.Hash
		}
		higher = higher || c.Head.Number > number
	}
	if !higher {
		return votes
	}
	for _, answer := range h.hashes(ctx, number) {
		for i, c := range claims {
			if c.node == answer.node && c.Head.Number > number {
				votes[i] = answer.hash
			}
		}
	}
	return votes
}

// elected returns a head with what a quorum of its voters says is safe and final.
func elected(claims []claim, votes []common.Hash, head chain.Ref, quorum int) Forkchoice {
	var safe, finalized []chain.Ref
	for i, vote := range votes {
		if vote == head.Hash {
			safe, finalized = append(safe, claims[i].Safe), append(finalized, claims[i].Finalized)
		}
	}
	return Forkchoice{Head: head, Safe: chain.Claimed(safe, quorum), Finalized: chain.Claimed(finalized, quorum)}
}

// OpenTip returns the tip of a remote chain, which is in memory only, so that nothing of it
// can become a row of an archive.
func OpenTip(ctx context.Context, settled chain.Ref) (*tip.Tip, error) {
	return tip.Open(ctx, forgetful{}, archive.Tables(), settled)
}
