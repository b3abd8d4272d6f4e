package upstream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestAnyTree follows nodes that reorganize, lag, drop, delay and lie at random. Every
// visible block is right at any moment, and whenever one node is honest for a while and has
// the best head, that head is reached.
func TestAnyTree(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			f := newFollower(t, ingest.Depths{Unfinalized: 40, Most: 80})
			var nodes []*fakeNode
			var asNodes []upstream.Node
			for i := range 3 {
				n := newFakeNode(fmt.Sprint("node ", i), w)
				n.silent = i == 1
				nodes, asNodes = append(nodes, n), append(asNodes, n)
			}
			var seen []chain.Ref
			unwatch := f.watch(func(head chain.Ref) { seen = append(seen, head) })
			for round := range 8 {
				w.round(f, nodes, asNodes, round)
			}
			unwatch()
			for _, head := range seen {
				if w.blocks[head.Hash] == nil || ref(w.blocks[head.Hash]) != head {
					t.Errorf("block %s was visible, which is not in the tree", head)
				}
			}
			if settled, _ := f.Archive.Settled(); settled.Number == 0 {
				t.Error("nothing was settled")
			}
		})
	}
}

// round runs the nodes for a while, most of them faulty, and then one of them honest.
func (w *world) round(f *follower, nodes []*fakeNode, asNodes []upstream.Node, round int) {
	// The tree changes only while no node is asked.
	settled, _ := f.Archive.Settled()
	ours := w.blocks[f.Forkchoice().Head.Ref().Hash]
	best := ours
	var heads []*types.Block
	for range nodes {
		fork := w.at(ours, max(settled.Number, ours.NumberU64()-min(ours.NumberU64(), w.Uint64N(12))))
		length := 1 + w.IntN(14)
		if w.IntN(6) == 0 {
			length = 150
		}
		head := w.grow(fork, length)
		heads = append(heads, head)
		if head.NumberU64() > best.NumberU64() {
			best = head
		}
	}
	// The last becomes the longest, so that the best head is unambiguous.
	last := w.grow(best, 1+w.IntN(3))
	heads[w.IntN(len(heads))] = last

	p, stop := f.pursue(w.t, asNodes...)
	for i, n := range nodes {
		n.set(func() { n.mischief, n.head = 50, heads[i] })
	}
	if round%2 == 0 {
		time.Sleep(20 * time.Millisecond) // time for many faults
	}
	for _, n := range nodes {
		n.set(func() {
			n.mischief = 0
			if n.head != last {
				n.mischief = 90
			}
		})
	}
	f.await(ref(last))
	stop()
	if status := p.Status(); len(status.Nodes) != len(nodes) {
		w.t.Errorf("the status names %d nodes", len(status.Nodes))
	}
}

// A distant head is reached by a bulk import up to the finalized block.
func TestFarBehind(t *testing.T) {
	w := newWorld(t, 1)
	n := newFakeNode("far", w)
	n.head = w.grow(w.builder.Genesis, 300)
	n.finalized = ref(w.at(n.head, 250))
	n.safe = ref(w.at(n.head, 270))
	f := newFollower(t, ingest.DefaultDepths())
	_, stop := f.pursue(t, n)
	f.await(ref(n.head))
	stop()
	if settled, _ := f.Archive.Settled(); settled != n.finalized {
		t.Errorf("settled is %s, expected the finalized block %s", settled, n.finalized)
	}
	if forkchoice := f.Forkchoice(); forkchoice.Safe != n.safe || forkchoice.Finalized != n.finalized {
		t.Errorf("safe is %s and finalized %s, expected %s and %s", forkchoice.Safe, forkchoice.Finalized, n.safe, n.finalized)
	}
	if n.asked["blocks"] > 2*300/16+8 || n.asked["block"] > 1 {
		t.Errorf("300 blocks took %v questions", n.asked)
	}
}

// A node whose chain forks off below our final block cannot be followed. The status says
// so, and the other nodes are followed.
func TestReorganizationBelowFinal(t *testing.T) {
	w := newWorld(t, 2)
	trunk := w.grow(w.builder.Genesis, 30)
	head, other := w.grow(trunk, 20), w.grow(w.at(trunk, 10), 60)
	n := newFakeNode("moved", w)
	n.head, n.finalized = head, ref(trunk)
	f := newFollower(t, ingest.DefaultDepths())
	p, stop := f.pursue(t, n)
	defer stop()
	f.await(ref(head))

	n.set(func() { n.head = other })
	until(t, "a problem", func() bool { return p.Status().Problem != "" })
	status := p.Status()
	if !strings.Contains(status.Problem, "below our last final block") || status.Nodes[0].Counts.TooDeep == 0 {
		t.Errorf("the status is %+v", status)
	}
	if got := f.Forkchoice().Head.Ref(); got != ref(head) {
		t.Errorf("the head is %s, expected %s", got, ref(head))
	}
	n.set(func() { n.head = w.blocks[head.Hash()] })
	until(t, "no problem", func() bool { return p.Status().Problem == "" })
}

// TestReorganizationOnTheWay: a branch so long that the head moves in steps while its blocks arrive is a reorganization all
// the same, which is logged once.
func TestReorganizationOnTheWay(t *testing.T) {
	for _, quorum := range []int{0, 2} {
		for _, blocks := range []int{40, 300} { // one by one; in bulk
			w := newWorld(t, 2)
			trunk := w.grow(w.builder.Genesis, 5)
			head, other := w.grow(trunk, 3), w.grow(trunk, blocks)
			a, b := newFakeNode("a", w), newFakeNode("b", w)
			a.head, b.head = head, head
			f := newFollower(t, ingest.Depths{Unfinalized: 60, Most: 120})
			f.quorum = quorum
			_, stop := f.pursue(t, a, b)
			f.await(ref(head))
			for _, n := range []*fakeNode{a, b} {
				n.set(func() { n.head = other })
			}
			f.await(ref(other))
			until(t, "the log of a reorganization", func() bool { return len(f.log.Of("reorganization")) > 0 })
			stop()
			if logged := f.log.Of("reorganization"); len(logged) != 1 || logged[0]["from"] != int64(8) || logged[0]["depth"] != int64(3) {
				t.Errorf("quorum %d, %d blocks: logged %v, want one of depth 3 from block 8", quorum, blocks, logged)
			}
		}
	}
}

// A foreign head at or below the final block is too deep, even while that block is not yet
// settled: no block of its branch is requested.
func TestHeadBelowFinal(t *testing.T) {
	w := newWorld(t, 6)
	trunk := w.grow(w.builder.Genesis, 30)
	head, other := w.grow(trunk, 5), w.grow(w.at(trunk, 10), 6)
	n := newFakeNode("short", w)
	n.head, n.finalized = head, ref(trunk)
	f := newFollower(t, ingest.DefaultDepths())
	p, stop := f.pursueUnsettled(t, n)
	defer stop()
	f.awaitForkchoice("the finalized block", func(s tip.Forkchoice) bool { return s.Head.Ref() == ref(head) && s.Finalized == ref(trunk) })

	var before int
	n.set(func() { n.head, before = other, n.asked["blocks"] })
	until(t, "the node to be set aside", func() bool { return p.Status().Nodes[0].Counts.TooDeep > 0 })
	n.set(func() {
		if asked := n.asked["blocks"] - before; asked > 0 {
			t.Errorf("the node was asked %d times for blocks below what is final", asked)
		}
	})
}

// A node that was rewound lags: its head is an ancestor of ours. If another branch grows
// from there, it is followed, even while it is shorter than ours.
func TestWoundBack(t *testing.T) {
	w := newWorld(t, 3)
	trunk := w.grow(w.builder.Genesis, 20)
	back := w.at(trunk, 10)
	other := w.grow(back, 3)
	n := newFakeNode("wound back", w)
	n.head = trunk
	f := newFollower(t, ingest.DefaultDepths())
	_, stop := f.pursue(t, n)
	defer stop()
	f.await(ref(trunk))
	var seen []chain.Ref
	unwatch := f.watch(func(head chain.Ref) { seen = append(seen, head) })
	n.set(func() { n.head = back })
	n.set(func() { n.head = other })
	f.await(ref(other))
	unwatch()
	for _, head := range seen {
		if head != ref(trunk) && head != ref(other) {
			t.Errorf("the head was %s on the way from %s to %s", head, ref(trunk), ref(other))
		}
	}
}

// Safe and finalized blocks are adopted only if they are on the branch.
func TestTagsOfOtherBranches(t *testing.T) {
	w := newWorld(t, 4)
	trunk := w.grow(w.builder.Genesis, 10)
	other := w.grow(w.at(trunk, 5), 3)
	n := newFakeNode("confused", w)
	n.head, n.safe, n.finalized = trunk, ref(other), ref(w.at(other, 7))
	f := newFollower(t, ingest.DefaultDepths())
	_, stop := f.pursue(t, n)
	defer stop()
	f.await(ref(trunk))
	if s := f.Forkchoice(); s.Safe != (chain.Ref{}) || s.Finalized != (chain.Ref{}) {
		t.Errorf("safe is %s, finalized %s; both are of another branch", s.Safe, s.Finalized)
	}
	n.set(func() { n.safe, n.finalized = ref(w.at(trunk, 8)), ref(w.at(trunk, 6)) })
	f.awaitForkchoice("tags of its own branch", func(s tip.Forkchoice) bool {
		return s.Safe == ref(w.at(trunk, 8)) && s.Finalized == ref(w.at(trunk, 6))
	})
}

// The genesis can be safe and finalized, as nodes of young chains report.
func TestGenesisIsFinal(t *testing.T) {
	w := newWorld(t, 7)
	n := newFakeNode("young", w)
	n.head = w.grow(w.builder.Genesis, 10)
	n.safe, n.finalized = ref(w.builder.Genesis), ref(w.builder.Genesis)
	f := newFollower(t, ingest.DefaultDepths())
	_, stop := f.pursue(t, n)
	defer stop()
	f.await(ref(n.head))
	if s := f.Forkchoice(); s.Safe != n.safe || s.Finalized != n.finalized {
		t.Errorf("safe is %s and finalized %s, expected the genesis %s", s.Safe, s.Finalized, n.finalized)
	}
}

// TestUnknownFork follows a node into a fork that this version does not support: the node
// is not blamed, and earlier blocks stay.
func TestUnknownFork(t *testing.T) {
	w := newWorld(t, 12)
	before := w.grow(w.builder.Genesis, 5)
	head := w.grow(before, 3)
	genesis := ingesttest.Genesis(t)
	config := *genesis.Config
	fork := before.Time() + 1
	config.BogotaTime, genesis.Config = &fork, &config
	f := &follower{Follower: ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths()), t: t}
	n := newFakeNode("one", w)
	n.head = before
	p, stop := f.pursue(t, n)
	f.await(ref(before))
	n.set(func() { n.head = head })
	until(t, "the problem is reported", func() bool {
		return strings.Contains(p.Status().Problem, execute.ErrUnknownFork.Error())
	})
	stop()
	if counts := p.Status().Nodes[0].Counts; counts != (upstream.Counts{}) {
		t.Errorf("the node is blamed: %+v", counts)
	}
	if got := f.Forkchoice().Head.Ref(); got != ref(before) {
		t.Errorf("the head is %s, expected %s", got, ref(before))
	}
}

// The status shows the progress towards a distant head.
func TestSyncing(t *testing.T) {
	w := newWorld(t, 5)
	n := newFakeNode("far", w)
	n.head = w.grow(w.builder.Genesis, 60)
	f := newFollower(t, ingest.DefaultDepths())
	n.held = make(chan struct{})
	p, stop := f.pursue(t, n)
	defer stop()
	until(t, "catching up", func() bool { return p.Status().Sync != nil })
	if sync := p.Status().Sync; *sync != (upstream.Sync{Highest: 60}) {
		t.Errorf("syncing is %+v", *sync)
	}
	close(n.held)
	f.await(ref(n.head))
	until(t, "nothing to catch up with", func() bool { return p.Status().Sync == nil })
}

// TestForkAtAnyDepth: the last common block with a branch is found, whatever its distance.
func TestForkAtAnyDepth(t *testing.T) {
	w := newWorld(t, 8)
	heads := []*types.Block{w.grow(w.builder.Genesis, 30)}
	for distance := uint64(1); distance <= 20; distance++ {
		for _, more := range []int{-1, 3} { // each branch is shorter or longer than the one before
			last := heads[len(heads)-1]
			heads = append(heads, w.grow(w.at(last, last.NumberU64()-distance), max(1, int(distance)+more)))
		}
	}
	n := newFakeNode("forks", w)
	f := newFollower(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
	p, stop := f.pursue(t, n)
	defer stop()
	for _, head := range heads {
		n.set(func() { n.head = head })
		f.await(ref(head))
	}
	if counts := p.Status().Nodes[0].Counts; counts != (upstream.Counts{}) {
		t.Errorf("the node is blamed: %+v", counts)
	}
}

// TestKnownBranchBelowFinal: a branch whose blocks are here is not returned to if it lacks the final block.
func TestKnownBranchBelowFinal(t *testing.T) {
	w := newWorld(t, 9)
	fork := w.grow(w.builder.Genesis, 20)
	other, head := w.grow(fork, 5), w.grow(fork, 20)
	n := newFakeNode("moves back", w)
	n.head = other
	f := newFollower(t, ingest.DefaultDepths())
	p, stop := f.pursueUnsettled(t, n)
	defer stop()
	f.await(ref(other))
	final := ref(w.at(head, 25))
	n.set(func() { n.head, n.finalized = head, final })
	f.awaitForkchoice("the final block", func(s tip.Forkchoice) bool { return s.Head.Ref() == ref(head) && s.Finalized == final })
	n.set(func() { n.head = other })
	until(t, "the node to be set aside", func() bool { return p.Status().Nodes[0].Counts.TooDeep > 0 })
	if s := f.Forkchoice(); s.Head.Ref() != ref(head) || s.Finalized != final {
		t.Errorf("the head is %s, finalized %s, expected %s and %s", s.Head.Ref(), s.Finalized, ref(head), final)
	}
}

// TestSafeBlockIsReorganizedAway: a reorganization that drops the safe block makes the final one safe, or else the
// last settled one, until a node names another.
func TestSafeBlockIsReorganizedAway(t *testing.T) {
	for _, final := range []uint64{0, 3} {
		w := newWorld(t, 10)
		fork := w.grow(w.builder.Genesis, 5)
		head, other := w.grow(fork, 5), w.grow(fork, 8)
		n := newFakeNode("node", w)
		n.head, n.safe = head, ref(w.at(head, 8))
		if final > 0 {
			n.finalized = ref(w.at(head, final))
		}
		f := newFollower(t, ingest.DefaultDepths())
		_, stop := f.pursueUnsettled(t, n)
		f.awaitForkchoice("the safe block", func(s tip.Forkchoice) bool { return s.Safe == n.safe })
		n.set(func() { n.head = other }) // still with the dropped block as the safe one
		f.await(ref(other))
		if s := f.Forkchoice(); s.Safe != ref(w.at(other, final)) {
			t.Errorf("final is %d: the safe block is %s, expected %d", final, s.Safe, final)
		}
		safe := ref(w.at(other, 7))
		n.set(func() { n.safe = safe })
		f.awaitForkchoice("the new safe block", func(s tip.Forkchoice) bool { return s.Safe == safe })
		stop()
	}
}

// fewAtOnce is a node that returns at most three blocks of those that it is asked for.
type fewAtOnce struct{ *fakeNode }

func (f fewAtOnce) Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error) {
	return f.fakeNode.Blocks(ctx, from, min(count, 3))
}

// TestFewBlocksAtOnce: the rest of a range is asked for again. A final block that a node names above its own head is
// ignored.
func TestFewBlocksAtOnce(t *testing.T) {
	w := newWorld(t, 13)
	n := newFakeNode("few", w)
	n.head, n.finalized = w.grow(w.builder.Genesis, 100), chain.Ref{Number: 5000, Hash: common.Hash{1}}
	f := newFollower(t, ingest.DefaultDepths())
	p, stop := f.pursue(t, fewAtOnce{n})
	f.await(ref(n.head))
	stop()
	if counts := p.Status().Nodes[0].Counts; counts != (upstream.Counts{}) {
		t.Errorf("the node is blamed: %+v", counts)
	}
	if n.asked["blocks"] > 2*100/3 {
		t.Errorf("100 blocks took %v questions", n.asked)
	}
}
