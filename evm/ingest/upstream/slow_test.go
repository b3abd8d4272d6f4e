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

// stuckNode tells of a head far above all others. Of its blocks it gives the first, if
// there are any, and then keeps whoever asks waiting.
type stuckNode struct {
	*fakeNode
	first []*types.Block // of number 1 and what follows it
	stuck chan struct{}  // receives when somebody waits
}

func (s stuckNode) Standing(context.Context) (node.Standing, error) {
	return node.Standing{Head: chain.Ref{Number: 100_000, Hash: common.Hash{9}}}, nil
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

// followBeside follows a node that is stuck, and then another beside it that is not.
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

// A node that keeps back what it says to have, all of it or all but a little, does not
// keep the chain from the head of another.
func TestSlowNodeIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, 2)
	head := w.grow(w.builder.Genesis, 40)
	pace := quick()
	pace.Step = 10 * time.Millisecond
	for _, given := range []uint64{0, 1} {
		followBeside(t, w, pace, head, w.upTo(head, given))
	}
}

// An import that has failed does not wait for blocks that it wants no more.
func TestFailedImportAsksForNoMore(t *testing.T) {
	w := newWorld(t, 4)
	head := w.grow(w.builder.Genesis, 40)
	first := w.upTo(head, 15)                  // which is a range
	first[0] = first[0].WithBody(types.Body{}) // whose header names withdrawals
	followBeside(t, w, quick(), head, first)   // at which a step may take an hour
}
