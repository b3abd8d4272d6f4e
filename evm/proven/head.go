package proven

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	// AskEach asks those of some nodes that are usable.
	AskEach(ctx context.Context, c upstream.Call, nodes []string) <-chan upstream.Answer
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
	problem atomic.Pointer[problem] // why the head stays; nil if it follows
	// Run alone uses the fields below.
	sound    map[string]uint64 // nodes on our chain, and the block up to which that was checked
	compared chain.Ref         // executed block with which nodes are compared
	anchored bool              // a block was made the first settled one
	election *upstream.Election
}

// NewHead returns the head of a remote chain. The tip is that of [OpenTip].
func NewHead(r *Remote, t *tip.Tip, config HeadConfig) *Head {
	h := &Head{config: config, remote: r, tip: t, arrived: make(chan struct{}), sound: make(map[string]uint64)}
	h.election = upstream.NewElection(upstream.ElectionConfig{AskEach: config.Watcher.AskEach, Question: hashQuestion, Hash: hashOf})
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

// problem is why the head stays, and since when it does.
type problem struct {
	why   string
	since time.Time
}

// Problem returns why the head stays where it is, "" if it follows.
func (h *Head) Problem() string {
	if p := h.problem.Load(); p != nil {
		return p.why
	}
	return ""
}

// Since returns since when there has been a problem, zero if there is none.
func (h *Head) Since() time.Time {
	if p := h.problem.Load(); p != nil {
		return p.since
	}
	return time.Time{}
}

// Run follows the head until ctx is done.
func (h *Head) Run(ctx context.Context) error {
	defer h.election.Wait()
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
		if !errors.Is(err, errUndecided) {
			h.note(err)
		}
		select {
		case <-changed:
		case <-h.election.Changed():
		case <-named:
		case <-ctx.Done():
			return nil
		}
	}
}

// note records why the head stays.
func (h *Head) note(err error) {
	if err == nil {
		h.problem.Store(nil)
		return
	}
	now, before := &problem{err.Error(), time.Now()}, h.problem.Load()
	if before != nil {
		now.since = before.since
	}
	h.problem.Store(now)
	if before == nil {
		h.config.Log.Warn("the head stays", "because", now.why)
	}
}

// Forkchoice is what nodes say about the end of the chain.
type Forkchoice struct{ Head, Safe, Finalized chain.Ref }

// claim is what a node says.
type claim struct {
	Forkchoice
	node string
}

// errUndecided means that there is no agreement before a slow node has answered. The head stays meanwhile.
var errUndecided = errors.New("a node has not answered yet")

// step moves the head to the one that the nodes agree on. Nodes that are slow may answer later, until ctx is done.
func (h *Head) step(ctx context.Context) error {
	choices, err := h.choices(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
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
	h.identify(ctx)
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
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
	if h.compared == (chain.Ref{}) || settled.Number >= h.compared.Number+identifiedBlocks {
		h.compared = settled // the same one until slow nodes have answered
	}
	open := h.compare(ctx, h.compared, fmt.Sprintf("block %d", h.compared.Number), func(name string) bool {
		checked, known := h.sound[name]
		return !known || settled.Number == 0 || checked > 0 && settled.Number < checked+identifiedBlocks
	})
	if !open {
		h.compared = chain.Ref{}
	}
}

// compare asks nodes for the hash of a block of ours, and sets those aside that have another
// one. Nodes that are known are not asked. open says that a node has not answered yet.
func (h *Head) compare(ctx context.Context, ours chain.Ref, what string, known func(node string) bool) (open bool) {
	var unknown []string
	for _, s := range h.config.Watcher.Status() {
		if s.Usable && !known(s.Name) {
			unknown = append(unknown, s.Name)
		}
	}
	hashes, open := h.election.Hashes(ctx, ours.Number, unknown)
	for name, hash := range hashes {
		if hash == ours.Hash {
			h.sound[name] = ours.Number
			continue
		}
		delete(h.sound, name)
		h.config.Watcher.SetAside(name, fmt.Errorf("its %s is %#x, expected %#x", what, hash, ours.Hash))
	}
	return open
}

// hashQuestion returns the question which block a node has at a number.
func hashQuestion(number uint64) upstream.Call {
	q := newQuestion(upstream.Blocks, number, "eth_getBlockByNumber", hexutil.Uint64(number), false)
	q.Check = func(answer json.RawMessage) error {
		_, err := node.ParseHeader(answer)
		return fault(err)
	}
	return q.Call
}

// hashOf returns the hash of a block that a node has sent.
func hashOf(answer json.RawMessage) (common.Hash, error) {
	header, err := node.ParseHeader(answer)
	if err != nil {
		return common.Hash{}, err
	}
	return header.Hash(), nil
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
	nodes := make([]upstream.Status, len(claims))
	for i, c := range claims {
		nodes[i] = upstream.Status{Name: c.node, Head: upstream.Head{Ref: c.Head}}
	}
	head, votes, open := h.election.Elect(ctx, nodes, h.config.Quorum, h.tip.Forkchoice().Head.Ref().Number)
	switch {
	case votes != nil:
		return []Forkchoice{elected(claims, votes, head, h.config.Quorum)}, nil
	case open:
		return nil, errUndecided
	}
	return nil, fmt.Errorf("no agreement: %d nodes must have the same head", h.config.Quorum)
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
