package upstream_test

import (
	"context"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// stuckNode announces a head far above all others. It serves the first blocks, if any, and
// then blocks its callers.
type stuckNode struct {
	*fakeNode
	first []*types.Block // from number 1 on
	stuck chan struct{}  // receives when a caller is blocked
}

func (s stuckNode) Forkchoice(context.Context) (node.Forkchoice, error) {
	return node.Forkchoice{Head: chain.Ref{Number: 100_000, Hash: common.Hash{9}}}, nil
}

func (s stuckNode) Watch(context.Context, func(chain.Ref)) error { return node.ErrNoSubscriptions }

func (s stuckNode) Blocks(ctx context.Context, from uint64, _ int) ([]*types.Block, error) {
	if from == 1 && len(s.first) > 0 {
		return s.first, nil
	}
	select {
	case s.stuck <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// followBeside follows a stuck node, and then also one that works.
func followBeside(t *testing.T, w *world, pace upstream.Pace, head *types.Block, first []*types.Block) {
	t.Helper()
	good, slow := newFakeNode("good", w), newFakeNode("slow", w)
	slow.head = head
	stuck := make(chan struct{}, 1)
	f := newFollower(t, ingest.DefaultDepths())
	stop := f.pursueAt(t, pace, good, stuckNode{slow, first, stuck})
	<-stuck
	good.set(func() { good.head = head })
	f.await(ref(head))
	stop()
}

// A node that withholds announced blocks, or all but a few, does not prevent the chain from
// reaching another node's head.
func TestSlowNodeIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, 2)
	head := w.grow(w.builder.Genesis, 40)
	pace := quick()
	pace.Step = 10 * time.Millisecond
	for _, given := range []uint64{0, 1} {
		followBeside(t, w, pace, head, w.upTo(head, given))
	}
}

// A failed import does not wait for blocks that it no longer needs.
func TestFailedImportAsksForNoMore(t *testing.T) {
	w := newWorld(t, 4)
	head := w.grow(w.builder.Genesis, 40)
	first := w.upTo(head, 15)                  // one range
	first[0] = first[0].WithBody(types.Body{}) // its header has withdrawals
	followBeside(t, w, quick(), head, first)   // a step may take an hour
}
