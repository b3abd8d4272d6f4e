package upstream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// threeNodes are nodes of a world and a follower with a quorum of two.
func threeNodes(t *testing.T, depths ingest.Depths) (*world, *follower, []*fakeNode) {
	w := newWorld(t, 7)
	f := newFollower(t, depths)
	f.quorum = 2
	return w, f, []*fakeNode{newFakeNode("a", w), newFakeNode("b", w), newFakeNode("c", w)}
}

// TestQuorum follows two nodes that agree. The third has a higher valid branch with final
// blocks of its own: nothing of it is ever visible, and it is named.
func TestQuorum(t *testing.T) {
	for _, blocks := range []int{30, 300} { // as a few blocks, and in bulk
		t.Run(fmt.Sprint(blocks, " blocks"), func(t *testing.T) {
			w, f, nodes := threeNodes(t, ingest.Depths{Unfinalized: 20, Most: 60})
			fork := w.grow(w.builder.Genesis, 5)
			right := w.grow(fork, blocks)
			wrong := w.grow(fork, blocks+40)
			nodes[0].head, nodes[1].head = right, right
			nodes[2].head, nodes[2].finalized = wrong, ref(w.at(wrong, uint64(blocks)))
			unwatch := f.watch(func(head chain.Ref) {
				if w.at(right, head.Number) == nil || ref(w.at(right, head.Number)) != head {
					t.Errorf("block %s is visible", head)
				}
			})
			p, stop := f.pursue(t, nodes[2], nodes[0], nodes[1])
			f.await(ref(right))
			nodes[2].set(func() { wrong = w.at(wrong, wrong.NumberU64()-1); nodes[2].head = wrong })
			until(t, "node c is named, and the others agree", func() bool {
				status := p.Status()
				return status.Nodes[0].Differs != "" && !status.Nodes[0].Used && status.Nodes[1].Used &&
					status.Agreement.Nodes == 2 && status.Reached && status.Best == right.NumberU64()
			})
			until(t, "blocks settle", func() bool {
				settled, _ := f.Archive.Settled()
				return settled == ref(w.at(right, right.NumberU64()-20))
			})
			stop()
			unwatch()
			if finalized := f.Forkchoice().Finalized; finalized != (chain.Ref{}) {
				t.Errorf("block %s is final, which a single node says", finalized)
			}
		})
	}
}

// TestNoQuorum: with two nodes of different opinion, of which two must agree, nothing
// moves, and the status says so. When they agree, the head moves.
func TestNoQuorum(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.Depths{Unfinalized: 4, Most: 8})
	fork := w.grow(w.builder.Genesis, 6)
	one, other := w.grow(fork, 20), w.grow(fork, 21)
	nodes[0].head, nodes[1].head = fork, fork
	p, stop := f.pursue(t, nodes[0], nodes[1])
	f.await(ref(fork))
	nodes[0].set(func() { nodes[0].head = one })
	nodes[1].set(func() { nodes[1].head = other })
	until(t, "the nodes disagree", func() bool {
		status := p.Status()
		return strings.Contains(status.Problem, "no agreement") && !status.Reached && status.Agreement.Nodes == 0 && !status.Agreement.Since.IsZero()
	})
	status := p.Status()
	if status.Best != fork.NumberU64() {
		t.Errorf("status %+v with %+v", status, status.Agreement)
	}
	for _, want := range []string{"at a", "at b", "block 26 is"} {
		if !strings.Contains(status.Problem, want) {
			t.Errorf("the problem is %q, want one that contains %q", status.Problem, want)
		}
	}
	if head := f.Forkchoice().Head.Ref(); head != ref(fork) {
		t.Errorf("the head is %s, want %s", head, ref(fork))
	}
	nodes[0].set(func() { nodes[0].head = other })
	f.await(ref(other))
	until(t, "agreement", func() bool { return p.Status().Reached && p.Status().Problem == "" })
	stop()
}

// TestQuorumOfTooFewNodes: a node that does not answer is one too few.
func TestQuorumOfTooFewNodes(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	nodes[0].head, nodes[1].head = w.grow(w.builder.Genesis, 3), w.builder.Genesis
	nodes[1].mischief = 100
	p, stop := f.pursue(t, nodes[0])
	until(t, "too few nodes", func() bool { return strings.Contains(p.Status().Problem, "1 of 1 nodes can be used, 2 must agree") })
	if f.Forkchoice().Head.Ref() != ref(w.builder.Genesis) || p.Status().Reached {
		t.Errorf("the head is %s, status %+v", f.Forkchoice().Head.Ref(), p.Status())
	}
	stop()
}

// TestQuorumLags: the head is the highest block that two nodes have, and final is what two
// of them say.
func TestQuorumLags(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	head := w.grow(w.builder.Genesis, 40)
	at := func(number uint64) *types.Block { return w.at(head, number) }
	nodes[0].head, nodes[0].finalized, nodes[0].safe = at(40), ref(at(35)), ref(at(39))
	nodes[1].head, nodes[1].finalized, nodes[1].safe = at(38), ref(at(20)), ref(at(30))
	nodes[2].head, nodes[2].finalized, nodes[2].safe = at(36), ref(at(21)), chain.Ref{Number: 31, Hash: common.Hash{1}}
	_, stop := f.pursue(t, nodes[0], nodes[1], nodes[2])
	f.await(ref(at(38)))
	nodes[2].set(func() { nodes[2].head, nodes[2].finalized = at(40), chain.Ref{Number: 35, Hash: common.Hash{2}} })
	f.await(ref(at(40)))
	stop()
	if s := f.Forkchoice(); s.Finalized.Number > 21 {
		t.Errorf("block %s is final, which a single node says", s.Finalized)
	}
}

// echo is a node that says it has the chain of the others, and serves another one.
type echo struct {
	*fakeNode
	serves *fakeNode
}

func (e echo) Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error) {
	return e.serves.Blocks(ctx, from, count)
}

func (e echo) Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error) {
	return e.serves.Headers(ctx, from, count)
}

// TestQuorumOfEchoes: a node that agrees with the others but serves another valid branch is
// found out before a block of it is executed.
func TestQuorumOfEchoes(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.Depths{Unfinalized: 20, Most: 60})
	fork := w.grow(w.builder.Genesis, 5)
	right, wrong := w.grow(fork, 300), w.grow(fork, 300)
	nodes[0].head, nodes[1].head, nodes[2].head = right, right, wrong
	unwatch := f.watch(func(head chain.Ref) {
		if ref(w.at(right, head.Number)) != head {
			t.Errorf("block %s is visible", head)
		}
	})
	p, stop := f.pursue(t, echo{nodes[0], nodes[2]}, nodes[1])
	f.await(ref(right))
	until(t, "blocks settle", func() bool {
		settled, _ := f.Archive.Settled()
		return settled == ref(w.at(right, right.NumberU64()-20))
	})
	stop()
	unwatch()
	if counts := p.Status().Nodes[0].Counts; counts.Failures+counts.Invalid == 0 {
		t.Error("the node that serves another branch is not blamed")
	}
}
