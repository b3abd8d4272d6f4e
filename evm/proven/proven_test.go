package proven

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/source/engine"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// following is a head over nodes.
type following struct {
	*Head
	remote *Remote
	tip    *tip.Tip
}

// follow returns a head over nodes that has not moved yet.
func follow(t *testing.T, nodes *testNodes, quorum int, more ...func(*HeadConfig)) following {
	t.Helper()
	c := nodes.nodes[0].chain
	remote := New(Config{Nodes: nodes, Chain: c.genesis.Config, Genesis: c.blocks[0].Hash()})
	config := HeadConfig{Watcher: nodes, Quorum: quorum, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, change := range more {
		change(&config)
	}
	begin := config.Base
	if begin == (chain.Ref{}) {
		begin = refOf(c.blocks[0])
	}
	opened, err := OpenTip(t.Context(), begin)
	if err != nil {
		t.Fatal(err)
	}
	return following{NewHead(remote, opened, config), remote, opened}
}

// stepTo moves the head, and fails the test unless it is a block.
func (f following) stepTo(t *testing.T, want *types.Block) {
	t.Helper()
	if err := f.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.tip.Forkchoice().Head.Ref(); got != refOf(want) {
		t.Fatalf("the head is %s, want %s", got, refOf(want))
	}
}

// state returns the state after a block.
func (f following) state(block *types.Block) *State {
	return f.remote.StateAt(func(context.Context) (*types.Header, error) { return block.Header(), nil })
}

func (c *testChain) node(name string) *testNode {
	return &testNode{name: name, chain: c, blocks: c.blocks}
}

// Blocks, receipts and state below the head are those of the chain, however far below.
func TestChain(t *testing.T) {
	c := newTestChain(t, 400)
	nodes := newTestNodes(c.node("a"))
	f := follow(t, nodes, 1)
	f.stepTo(t, c.blocks[400])
	for _, number := range []uint64{272, 271, 200, 1} {
		delta, err := f.remote.Block(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if delta.Block.Hash() != c.blocks[number].Hash() || delta.Senders[0] != sender {
			t.Errorf("block %d is %#x from %v, want %#x from %v", number, delta.Block.Hash(), delta.Senders, c.blocks[number].Hash(), sender)
		}
		receipts, err := f.remote.Receipts(t.Context(), number)
		if err != nil || len(receipts) != 1 || len(receipts[0].Logs) != 1 {
			t.Errorf("receipts of block %d: %v, %v", number, receipts, err)
		}
		state := f.state(c.blocks[number])
		slot, err := state.Slot(t.Context(), evm.AccountKey(state, counter), evm.SlotKey(state, common.Hash{}))
		if want := common.BigToHash(new(big.Int).SetUint64(number)); err != nil || slot != want {
			t.Errorf("slot 0 after block %d: %x, %v, want %x", number, slot, err, want)
		}
	}
	if _, err := f.remote.Block(t.Context(), 401); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("a block above the head: %v", err)
	}
	nodes.count("eth_getBlockByNumber")
	if _, err := f.remote.Block(t.Context(), 150); err != nil {
		t.Fatal(err)
	}
	if n := nodes.count("eth_getBlockByNumber"); n != 0 {
		t.Errorf("a block whose hash is known takes %d headers", n)
	}
}

// A node that alters anything is set aside, and the answer comes from another.
func TestAlteredAnswers(t *testing.T) {
	bend := func(raw hexutil.Bytes) hexutil.Bytes {
		bent := slices.Clone(raw)
		bent[len(bent)-1] ^= 1
		return bent
	}
	for _, lie := range []struct {
		method string
		bend   func(any) any
	}{
		{"debug_getRawBlock", func(v any) any { return bend(v.(hexutil.Bytes)) }},
		{"debug_getRawReceipts", func(v any) any { return slices.Repeat(v.([]hexutil.Bytes), 2) }},
		{"debug_getRawReceipts", func(v any) any { return []hexutil.Bytes{bend(v.([]hexutil.Bytes)[0])} }},
		{"eth_getCode", func(v any) any { return bend(v.(hexutil.Bytes)) }},
		{"eth_getProof", func(v any) any {
			answer := v.(map[string]any)
			answer["accountProof"] = answer["accountProof"].([]hexutil.Bytes)[1:]
			return answer
		}},
		{"eth_getProof", func(v any) any { delete(v.(map[string]any), "storageProof"); return v }},
	} {
		t.Run(lie.method, func(t *testing.T) {
			c := newTestChain(t, 3)
			liar, honest := c.node("liar"), c.node("honest")
			nodes := newTestNodes(liar, honest)
			f := follow(t, nodes, 1)
			liar.alter = func(method string, result any) any {
				if method == lie.method {
					return lie.bend(result)
				}
				return result
			}
			f.stepTo(t, c.blocks[3])
			state := f.state(c.blocks[3])
			account, err := state.Account(t.Context(), evm.AccountKey(state, counter))
			if err != nil {
				t.Fatal(err)
			}
			code, err := state.Code(t.Context(), common.BytesToHash(account.CodeHash))
			if err != nil || !slices.Equal(code, counterCode) {
				t.Errorf("code %x, %v", code, err)
			}
			slot, err := state.Slot(t.Context(), evm.AccountKey(state, counter), evm.SlotKey(state, common.Hash{}))
			if err != nil || slot.Big().Uint64() != 3 {
				t.Errorf("slot 0 is %x, %v, want 3", slot, err)
			}
			if nodes.aside["liar"] == nil || nodes.aside["honest"] != nil {
				t.Errorf("set aside: %v", nodes.aside)
			}
		})
	}
}

// Absence is proven: an account that does not exist is not taken from a node's word.
func TestAbsence(t *testing.T) {
	c := newTestChain(t, 2)
	f := follow(t, newTestNodes(c.node("a")), 1)
	f.stepTo(t, c.blocks[2])
	state := f.state(c.blocks[2])
	account, err := state.Account(t.Context(), evm.AccountKey(state, common.Address{7}))
	if account != nil || err != nil {
		t.Errorf("an account that does not exist: %v, %v", account, err)
	}
	if _, err := state.Account(t.Context(), common.Hash{7}); !errors.Is(err, evm.ErrUnnamed) {
		t.Errorf("an account without a name: %v", err)
	}
}

// Nodes that wind back take the head with them, onto the other branch.
func TestReorganization(t *testing.T) {
	c := newTestChain(t, 40)
	a, b := c.node("a"), c.node("b")
	f := follow(t, newTestNodes(a, b), 2)
	f.stepTo(t, c.blocks[40])
	before := f.tip.Forkchoice().Head

	fork := c.fork(30, 5)
	a.blocks = append(slices.Clone(c.blocks), fork[31:]...) // it still has the old blocks by hash
	a.blocks = fork
	if err := f.step(t.Context()); err != nil && f.tip.Forkchoice().Head.Ref() != before.Ref() {
		t.Fatalf("without agreement: the head is %s, %v", f.tip.Forkchoice().Head.Ref(), err)
	}
	b.blocks = fork
	f.stepTo(t, fork[35])
	dropped, added, err := tip.Difference(before, f.tip.Forkchoice().Head, func(uint64) (chain.Ref, error) { return chain.Ref{}, errors.New("not in the tip") })
	if err != nil || len(dropped) != 10 || len(added) != 5 {
		t.Errorf("%d blocks are dropped and %d added, %v, want 10 and 5", len(dropped), len(added), err)
	}
	a.blocks, b.blocks = c.blocks, c.blocks
	f.stepTo(t, c.blocks[40])
}

// A head that does not descend from the last final block is refused.
func TestDeepReorganization(t *testing.T) {
	c := newTestChain(t, 20)
	a := c.node("a")
	a.finalized = refOf(c.blocks[15])
	f := follow(t, newTestNodes(a), 1)
	f.stepTo(t, c.blocks[20])
	a.blocks = c.fork(10, 15)
	if err := f.step(t.Context()); !errors.Is(err, ErrTooDeep) {
		t.Errorf("a branch below the final block: %v", err)
	}
	if got := f.tip.Forkchoice().Head.Ref(); got != refOf(c.blocks[20]) {
		t.Errorf("the head is %s", got)
	}
}

// A head must descend from the block with which a chain begins, and a node with another block
// at a place that was executed here is set aside.
func TestBase(t *testing.T) {
	c := newTestChain(t, 300)
	f := follow(t, newTestNodes(c.node("a")), 1, func(h *HeadConfig) { h.Base = refOf(c.blocks[100]) })
	f.stepTo(t, c.blocks[300])

	other := c.node("other")
	other.blocks = c.fork(90, 100)
	f = follow(t, newTestNodes(other), 1, func(h *HeadConfig) { h.Base = refOf(c.blocks[100]) })
	if err := f.step(t.Context()); !errors.Is(err, ErrTooDeep) {
		t.Errorf("a head of another branch: %v", err)
	}

	honest := c.node("honest")
	nodes := newTestNodes(other, honest)
	f = follow(t, nodes, 1, func(h *HeadConfig) { h.Settled = func() chain.Ref { return refOf(c.blocks[100]) } })
	f.stepTo(t, c.blocks[300])
	if nodes.aside["other"] == nil || nodes.aside["honest"] != nil {
		t.Errorf("set aside: %v", nodes.aside)
	}
}

// The head stays while it is not needed.
func TestNeeded(t *testing.T) {
	c := newTestChain(t, 5)
	nodes := newTestNodes(c.node("a"))
	needed := false
	f := follow(t, nodes, 1, func(h *HeadConfig) { h.Needed = func(uint64) bool { return needed } })
	f.stepTo(t, c.blocks[0])
	if n := nodes.count("debug_getRawBlock"); n != 0 {
		t.Errorf("%d blocks were fetched", n)
	}
	needed = true
	f.stepTo(t, c.blocks[5])
}

// A consensus client names the head, and hears of every block that it is not executed.
func TestConsensus(t *testing.T) {
	c := newTestChain(t, 30)
	nodes := newTestNodes(c.node("a"))
	var consensus *Consensus
	f := follow(t, nodes, 1)
	consensus = NewConsensus(f.remote, "consensus client")
	f.config.Consensus = consensus
	expect := func(what string, want engine.Verdict) func(engine.Status, error) {
		return func(status engine.Status, err error) {
			t.Helper()
			if err != nil || status.Verdict != want || status.LatestValid != nil {
				t.Errorf("%s: %+v, %v, want %s", what, status, err, want)
			}
		}
	}
	if err := f.step(t.Context()); err == nil {
		t.Error("there is a head before the client has named one")
	}
	name := func(head, finalized *types.Block) engine.Forkchoice {
		return engine.Forkchoice{Head: head.Hash(), Safe: finalized.Hash(), Finalized: finalized.Hash()}
	}
	expect("a payload", engine.Syncing)(consensus.NewPayload(t.Context(), c.blocks[20]))
	_, changed := consensus.forkchoice()
	expect("its forkchoice", engine.Syncing)(consensus.UpdateForkchoice(t.Context(), name(c.blocks[20], c.blocks[10])))
	select {
	case <-changed:
	default:
		t.Error("the head does not learn of the forkchoice")
	}
	f.stepTo(t, c.blocks[20]) // the node has higher ones
	now := f.tip.Forkchoice()
	if now.Finalized != refOf(c.blocks[10]) || now.Safe != refOf(c.blocks[10]) {
		t.Errorf("safe %s and finalized %s, want block 10", now.Safe, now.Finalized)
	}
	fork := c.fork(18, 4)
	for _, block := range fork[19:] {
		expect("a payload of another branch", engine.Syncing)(consensus.NewPayload(t.Context(), block))
	}
	expect("the other branch", engine.Syncing)(consensus.UpdateForkchoice(t.Context(), name(fork[22], c.blocks[10])))
	nodes.nodes[0].blocks = fork // which has their receipts
	f.stepTo(t, fork[22])
	deep := c.fork(5, 30)
	nodes.nodes[0].blocks = deep
	expect("a branch below the final block", engine.Syncing)(consensus.UpdateForkchoice(t.Context(), name(deep[35], deep[30])))
	if err := f.step(t.Context()); !errors.Is(err, ErrTooDeep) {
		t.Errorf("a branch below the final block: %v", err)
	}
	expect("no head", engine.Invalid)(consensus.UpdateForkchoice(t.Context(), engine.Forkchoice{}))
}

// A spine that climbs keeps what it knows of older blocks.
func TestClimb(t *testing.T) {
	c := newTestChain(t, 600)
	nodes := newTestNodes(c.node("a"))
	f := follow(t, nodes, 1)
	s := f.remote.below
	for _, step := range []struct{ anchor, number uint64 }{{300, 20}, {500, 20}, {600, 450}} {
		if err := s.climb(t.Context(), refOf(c.blocks[step.anchor])); err != nil {
			t.Fatal(err)
		}
		climbed := nodes.count("eth_getBlockByNumber")
		hash, err := s.hash(t.Context(), step.number)
		if err != nil || hash != c.blocks[step.number].Hash() {
			t.Errorf("block %d below %d: %#x, %v, want %#x", step.number, step.anchor, hash, err, c.blocks[step.number].Hash())
		}
		if n := nodes.count("eth_getBlockByNumber"); step.anchor > 300 && n > 0 {
			t.Errorf("after the climb to %d, which took %d headers, block %d takes %d", step.anchor, climbed, step.number, n)
		}
	}
	other := c.fork(200, 500)
	nodes.nodes[0].blocks = other
	if err := s.climb(t.Context(), refOf(other[650])); err != nil {
		t.Fatal(err)
	}
	if hash, err := s.hash(t.Context(), 250); err != nil || hash != other[250].Hash() {
		t.Errorf("block 250 of another chain: %#x, %v, want %#x", hash, err, other[250].Hash())
	}
}

// A climb that takes longer than one question has time for ends nevertheless, also if the block
// to climb to moves on meanwhile.
func TestClimbContinues(t *testing.T) {
	c := newTestChain(t, 800)
	n := c.node("a")
	nodes := newTestNodes(n)
	s := follow(t, nodes, 1).remote.below
	if err := s.climb(t.Context(), refOf(c.blocks[200])); err != nil {
		t.Fatal(err)
	}
	answers := 0
	n.alter = func(_ string, result any) any {
		if answers--; answers < 0 {
			return func() {} // which cannot be encoded
		}
		return result
	}
	const questions = 4
	for i := range questions {
		answers = rungBlocks * 3 / 2
		err := s.climb(t.Context(), refOf(c.blocks[700+uint64(i)]))
		if (err == nil) != (i == questions-1) {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	answers = 0
	for _, number := range []uint64{250, 650, 703} {
		if hash, err := s.hash(t.Context(), number); err != nil || hash != c.blocks[number].Hash() {
			t.Errorf("block %d: %#x, %v, want %#x", number, hash, err, c.blocks[number].Hash())
		}
	}
}
