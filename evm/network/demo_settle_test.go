package network

import (
	"errors"
	"log/slog"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/internal/await"
	"ashlar/kv/kvtest"
	"ashlar/retry"
)

// TestDemoThatCannotSettle: while blocks cannot be settled, the demo makes as many as the tip may hold and no more, says why, and goes
// on when they can be settled again.
func TestDemoThatCannotSettle(t *testing.T) {
	shown, below, place := fullDemo(t, 20)
	store := &watchedWrites{kvtest.NewDoubtful(below), func() {}}
	n, m := startMiner(t, shown, store, place)
	const depth, most = 2, 2 + 64 // with as many as are settled in one write
	m.follower = n.follower(ingest.Depths{Unfinalized: depth, Most: depth})
	m.follower.Task = retry.New("settle blocks", slog.Default())
	unsettled := func() uint64 {
		head := n.tip.Forkchoice().Head
		return head.Ref().Number - head.Settled().Number
	}
	for range most {
		if err := m.mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	store.before = func() { store.Fail = 1 }
	stop := runBeside(t, m.follower.Run)
	await.Until(t, "the stop of settling", func() bool { return m.follower.Task.Stopped() != nil })
	stop()
	for range 2 {
		if err := m.mine(t.Context()); !errors.Is(err, kvtest.ErrDoubtful) {
			t.Errorf("while no blocks can be settled: %v, expected %v", err, kvtest.ErrDoubtful)
		}
	}
	store.before, store.Fail = func() {}, 0
	if got := unsettled(); got != most {
		t.Errorf("%d blocks are not settled, expected %d", got, most)
	}
	if err := settleDue(t, n, m); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.mine(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := settleDue(t, n, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := unsettled(); got != depth {
		t.Errorf("%d blocks are not settled, expected %d", got, depth)
	}
	checkContents(t, n, shown)
}
