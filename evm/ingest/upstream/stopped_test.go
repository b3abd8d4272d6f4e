package upstream_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/core/types"
)

// heldFrom is a node that does not answer for blocks from a number on until it is released. asked is
// called before it answers for blocks.
type heldFrom struct {
	*fakeNode
	number  uint64
	release chan struct{}
	asked   func()
}

func (h heldFrom) Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error) {
	h.asked()
	if from >= h.number {
		select {
		case <-h.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.fakeNode.Blocks(ctx, from, count)
}

// TestStoppedEndsOnTheWay: after an error of our own, such as a full disk, following is no longer stopped once
// blocks settle again, not only when a head that is far away has been reached.
func TestStoppedEndsOnTheWay(t *testing.T) {
	for name, quorum := range map[string]int{"best node": 1, "quorum": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			head := w.grow(w.builder.Genesis, 400)
			release := make(chan struct{})
			f := newFollower(t, ingest.Depths{Unfinalized: 40, Most: 80})
			task := retry.New("follow", slog.New(slog.DiscardHandler))
			fail := sync.OnceFunc(func() { // as if the attempt before had failed
				failed := false
				_ = task.Keep(t.Context(), func(context.Context) error {
					if failed {
						return nil
					}
					failed = true
					return errors.New("the disk is full")
				})
				if task.Stopped() == nil {
					t.Error("the task is not stopped")
				}
			})
			var nodes []upstream.Node
			for _, name := range []string{"a", "b"} {
				n := newFakeNode(name, w)
				n.head = head
				nodes = append(nodes, heldFrom{n, 128, release, fail})
			}
			p := upstream.New(upstream.Config{
				Task: task, Quorum: quorum, Nodes: nodes, Follower: f.Follower.Follower, Pace: quick(), Log: slog.New(slog.DiscardHandler),
				ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Genesis: f.Genesis.Hash(),
			})
			stop := run(t, p.Run, f.Run)
			until(t, "blocks that settle", func() bool { settled, _ := f.Archive.Settled(); return settled.Number > 0 })
			until(t, "following that is not stopped", func() bool { return task.Stopped() == nil })
			if at := f.Forkchoice().Head.Ref().Number; at >= head.NumberU64() {
				t.Errorf("the head %d was reached before", at)
			}
			close(release)
			f.await(ref(head))
			stop()
		})
	}
}
