package upstream_test

import (
	"errors"
	"log/slog"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/kv/kvtest"
	"ashlar/retry"
)

// TestBlocksThatCannotSettle: while blocks cannot be settled, a chain follows its nodes until its tip is full. Then it stops because
// of an error of its own, and the nodes are not blamed. It goes on by itself when blocks settle again.
func TestBlocksThatCannotSettle(t *testing.T) {
	for name, quorum := range map[string]int{"best node": 1, "quorum": 2} {
		t.Run(name, func(t *testing.T) {
			const depth, most = 4, 4 + 64 // with as many as are settled in one write
			w := newWorld(t, 1)
			last := w.grow(w.builder.Genesis, 3*most)
			store := &kvtest.Refusing{Store: ingesttest.Store(t), Name: "settled"}
			f := &follower{Follower: ingesttest.NewFollowerOver(t, store, ingesttest.Genesis(t), ingest.Depths{Unfinalized: depth, Most: depth}), t: t}
			store.Refuse.Store(true)
			a, b := newFakeNode("a", w), newFakeNode("b", w)
			f.Task = retry.New("settle blocks", slog.New(slog.DiscardHandler))
			task := retry.New("follow", slog.New(slog.DiscardHandler))
			p := upstream.New(upstream.Config{
				Task: task, Quorum: quorum, Nodes: []upstream.Node{a, b}, Follower: f.Follower.Follower, Pace: quick(), Log: slog.New(slog.DiscardHandler),
				ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Genesis: f.Genesis.Hash(),
			})
			stop := run(t, p.Run, f.Run)
			for number := uint64(16); number < 3*most; number += 16 { // in steps that are too small for an import
				head := w.at(last, number)
				for _, n := range []*fakeNode{a, b} {
					n.set(func() { n.head = head })
				}
				until(t, "the head, or a stop", func() bool { return f.Forkchoice().Head.Ref() == ref(head) || task.Stopped() != nil })
			}
			until(t, "the stop", func() bool { return task.Stopped() != nil && errors.Is(task.Stopped().Err, kvtest.ErrRefused) })
			if got := f.Tip.Len(); got != most {
				t.Errorf("%d blocks are in the tip, expected %d", got, most)
			}
			for _, n := range p.Status().Nodes {
				if n.Counts != (upstream.Counts{}) {
					t.Errorf("node %s: %+v", n.Name, n)
				}
			}
			store.Refuse.Store(false)
			for _, n := range []*fakeNode{a, b} {
				n.set(func() { n.head = last })
			}
			f.await(ref(last))
			until(t, "settling", func() bool {
				settled, _ := f.Archive.Settled()
				return settled.Number == last.NumberU64()-depth && task.Stopped() == nil && f.Task.Stopped() == nil
			})
			stop()
		})
	}
}
