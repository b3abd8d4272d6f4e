package upstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"

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
	kind   string
}

// The kinds of echoes, by what they serve of the other chain.
const (
	echoAll    = "headers and blocks"
	echoBlocks = "blocks"
	echoParts  = "blocks but the last of each answer"
)

func (e echo) Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error) {
	blocks, err := e.serves.Blocks(ctx, from, count)
	if err == nil && e.kind == echoParts {
		last := len(blocks) - 1
		blocks[last] = e.world.at(e.head, blocks[last].NumberU64())
	}
	return blocks, err
}

func (e echo) Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error) {
	if e.kind == echoAll {
		return e.serves.Headers(ctx, from, count)
	}
	return e.fakeNode.Headers(ctx, from, count)
}

// TestQuorumOfEchoes: a node that agrees with the others but serves another valid branch is
// found out before a block of it is executed.
func TestQuorumOfEchoes(t *testing.T) {
	for _, kind := range []string{echoAll, echoBlocks, echoParts} {
		t.Run(kind, func(t *testing.T) {
			w, f, nodes := threeNodes(t, ingest.Depths{Unfinalized: 20, Most: 60})
			fork := w.grow(w.builder.Genesis, 5)
			right, wrong := w.grow(fork, 160), w.grow(fork, 160) // as many as are imported in bulk
			nodes[0].head, nodes[1].head, nodes[2].head = right, right, wrong
			unwatch := f.watch(func(head chain.Ref) {
				if ref(w.at(right, head.Number)) != head {
					t.Errorf("block %s is visible", head)
				}
			})
			p, stop := f.pursue(t, echo{nodes[0], nodes[2], kind}, nodes[1])
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
		})
	}
}

// TestQuorumBelowTheFork: where the highest heads differ, the highest block that a quorum has is
// followed. A node that is below the others has no say above its head, and is not waited for.
func TestQuorumBelowTheFork(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	common := w.grow(w.builder.Genesis, 20)
	nodes[0].head, nodes[1].head, nodes[2].head = w.grow(common, 5), w.grow(common, 5), common
	p, stop := f.pursue(t, nodes[0], nodes[1], nodes[2])
	defer stop()
	f.await(ref(common))
	until(t, "agreement", func() bool { status := p.Status(); return status.Reached && status.Best == common.NumberU64() })
}

// silentAt is a node that answers nothing before it is released, and never says which block it has at a number.
type silentAt struct {
	*fakeNode
	released chan struct{}
}

func (s silentAt) Identity(ctx context.Context) (uint64, common.Hash, error) {
	select {
	case <-s.released:
		return s.fakeNode.Identity(ctx)
	case <-ctx.Done():
		return 0, common.Hash{}, ctx.Err()
	}
}

func (s silentAt) HashAt(ctx context.Context, _ uint64) (common.Hash, error) {
	_, _, _ = s.begin(ctx, "hash")
	<-ctx.Done()
	return common.Hash{}, ctx.Err()
}

// TestQuorumWaitsForNoMore: a node that does not answer delays the others that agree only a little, and is
// not blamed for the answer that was not waited for.
func TestQuorumWaitsForNoMore(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	head := w.grow(w.builder.Genesis, 25)
	nodes[0].head, nodes[1].head, nodes[2].head = w.at(head, 20), w.at(head, 20), head
	silent := silentAt{nodes[2], make(chan struct{})}
	p, stop := f.pursue(t, silent, nodes[0], nodes[1])
	defer stop()
	f.await(ref(w.at(head, 20)))
	close(silent.released)
	until(t, "a question for the silent node", func() (asked bool) {
		nodes[2].set(func() { asked = nodes[2].asked["hash"] > 0 })
		return asked
	})
	next := w.at(head, 21)
	nodes[2].set(func() { nodes[2].head = next })
	nodes[0].set(func() { nodes[0].head = next })
	f.await(ref(next))
	if counts := p.Status().Nodes[0].Counts; counts != (upstream.Counts{}) {
		t.Errorf("the silent node has %+v", counts)
	}
}

// refusing is a node that stops to answer, and takes a while to fail.
type refusing struct {
	*fakeNode
	refuses *atomic.Bool
}

func (r refusing) Identity(ctx context.Context) (uint64, common.Hash, error) {
	if r.refuses.Load() {
		time.Sleep(10 * time.Millisecond)
		return 0, common.Hash{}, errDropped
	}
	return r.fakeNode.Identity(ctx)
}

func (r refusing) Forkchoice(ctx context.Context) (node.Forkchoice, error) {
	if r.refuses.Load() {
		return node.Forkchoice{}, errDropped
	}
	return r.fakeNode.Forkchoice(ctx)
}

// TestQuorumLosesNode: when a node stops to answer, the status says at once that the others are too few.
func TestQuorumLosesNode(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	head := w.grow(w.builder.Genesis, 3)
	nodes[0].head, nodes[1].head = head, head
	var refuses atomic.Bool
	p, stop := f.pursue(t, nodes[0], refusing{nodes[1], &refuses})
	defer stop()
	f.await(ref(head))
	until(t, "agreement", func() bool { return p.Status().Reached })
	refuses.Store(true)
	until(t, "too few nodes", func() bool {
		status := p.Status()
		return !status.Reached && strings.Contains(status.Problem, "1 of 2 nodes can be used, 2 must agree") && status.Nodes[1].Why == errDropped.Error()
	})
	for range 50 { // while the node is asked again and again
		if time.Sleep(time.Millisecond); p.Status().Reached {
			t.Fatal("a node that does not answer counts")
		}
	}
	refuses.Store(false)
	until(t, "agreement", func() bool { return p.Status().Reached && p.Status().Problem == "" })
}

// TestQuorumForksBelowSettled: a branch that forks off below the last settled block is too deep, whoever agrees on it.
func TestQuorumForksBelowSettled(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.Depths{Unfinalized: 4, Most: 8})
	fork := w.grow(w.builder.Genesis, 5)
	head, other := w.grow(fork, 25), w.grow(fork, 30)
	nodes[0].head, nodes[1].head = head, head
	p, stop := f.pursue(t, nodes[0], nodes[1])
	defer stop()
	f.await(ref(head))
	until(t, "blocks settle", func() bool { settled, _ := f.Archive.Settled(); return settled.Number > fork.NumberU64() })
	for _, n := range nodes[:2] {
		n.set(func() { n.head = other })
	}
	until(t, "the nodes to be set aside", func() bool {
		status := p.Status()
		return !slices.ContainsFunc(status.Nodes, func(n upstream.NodeStatus) bool {
			return n.Counts.TooDeep == 0 || n.Why != upstream.ErrTooDeep.Error()
		})
	})
	if got := f.Forkchoice().Head.Ref(); got != ref(head) {
		t.Errorf("the head is %s, want %s", got, ref(head))
	}
}

// TestQuorumRests: while nothing changes, nodes are not asked again which blocks they have.
func TestQuorumRests(t *testing.T) {
	w, f, nodes := threeNodes(t, ingest.DefaultDepths())
	nodes[0].head = w.grow(w.builder.Genesis, 6)
	nodes[1].head = w.at(nodes[0].head, 5)
	pace := quick()
	pace.Poll, pace.Recheck = time.Hour, time.Hour
	stop := f.pursueAt(t, pace, nodes[0], nodes[1])
	f.await(ref(nodes[1].head))
	time.Sleep(50 * time.Millisecond) // time for thousands of questions
	stop()
	if asked := nodes[0].asked["hash"]; asked == 0 || asked > 10 {
		t.Errorf("a node was asked %d times for a block, want a few", asked)
	}
}

// heldHash is a node that does not answer for hashes while its callers wait. It sends to asked for each call.
type heldHash struct {
	*fakeNode
	asked chan struct{}
}

func (h heldHash) HashAt(ctx context.Context, _ uint64) (common.Hash, error) {
	select {
	case h.asked <- struct{}{}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return common.Hash{}, ctx.Err()
}

// TestAgreementWithoutASlowNode: a node that is ahead and does not answer does not hold up the others. They agree on a lower block,
// and on the next one as soon as a node that was behind has it, or one above it, or the block is the slow node's head.
func TestAgreementWithoutASlowNode(t *testing.T) {
	for name, then := range map[string]struct{ slow, behind uint64 }{
		"the same head": {10, 8}, "a higher head": {10, 9}, "the slow node's head": {8, 7},
	} {
		t.Run(name, func(t *testing.T) {
			w, f, nodes := threeNodes(t, ingest.DefaultDepths())
			last := w.grow(w.builder.Genesis, 10)
			a, slow, behind := nodes[0], heldHash{nodes[1], make(chan struct{})}, nodes[2]
			a.head, slow.head, behind.head = w.at(last, 8), last, w.at(last, 7)
			_, stop := f.pursue(t, a, slow, behind)
			f.await(ref(w.at(last, 7)))
			<-slow.asked
			slow.set(func() { slow.head = w.at(last, then.slow) })
			behind.set(func() { behind.head = w.at(last, then.behind) })
			f.await(ref(w.at(last, 8)))
			stop()
		})
	}
}
