package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/kv"
)

// TestPrune removes older history of a network, more of it, and the same again. What is left is sound.
// It refuses what cannot be done.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	demoOf(t, named(t, "evm"), dir, "small", 300)
	for _, test := range []struct {
		keep                retention.Window
		proofs, state, rows uint64 // rows: at least
	}{
		{retention.Window{Proofs: 10}, 291, 0, 500},
		{retention.Window{Proofs: 5, State: 20}, 296, 281, 500},
		{retention.Window{Proofs: 5, State: 20}, 296, 281, 0},
		{retention.Window{State: 20}, 296, 281, 0}, // what is removed does not come back
		{retention.Window{State: 4, History: 4}, 297, 297, 10},
	} {
		var out strings.Builder
		if err := (Prune{Data: dir, Network: "small", Keep: test.keep}).Run(t.Context(), &out, os.Stderr); err != nil {
			t.Fatal(err)
		}
		first := uint64(0)
		if test.keep.History > 0 {
			first = test.state - 256
		}
		if want := fmt.Sprintf("small: has proofs from block %d on, the state from block %d on, and blocks from block %d on; ", test.proofs, test.state, first); !strings.HasPrefix(out.String(), want) {
			t.Errorf("%+v: it says %q, want %q", test.keep, out.String(), want)
		}
		if none := strings.Contains(out.String(), "; 0 rows removed"); none != (test.rows == 0) {
			t.Errorf("%+v: it says %q, want at least %d rows removed", test.keep, out.String(), test.rows)
		}
		status, err := ReadStatus(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := status.Networks[0]; n.First != first || max(n.First, n.FirstState) != test.state || max(n.First, n.FirstState, n.FirstProof) != test.proofs || n.Settled != 300 {
			t.Errorf("%+v: the status is %+v", test.keep, n)
		}
		out.Reset()
		v := Verify{Data: dir, Network: "small", Verification: family.Verification{To: Head, Full: true}}
		if err := v.Run(t.Context(), &out, os.Stderr); err != nil {
			t.Errorf("%+v: %v", test.keep, err)
		}
		checkUnchecked(t, out.String(), first, test.state, test.proofs)
	}
	checkPruneRefuses(t, dir)
}

// checkUnchecked checks what a verification says it could not check of a network with a first block, a first
// one with state and a first one with proofs.
func checkUnchecked(t *testing.T, said string, first, state, proofs uint64) {
	t.Helper()
	for _, test := range []struct {
		what      string
		from, end uint64
		said      bool
	}{
		{": not stored.\n", first, state, first < state},
		{": their trie nodes are not stored. The tries were built again as of 16 blocks; as of the others only the form of the rows was checked.\n", state, proofs, state+16 < proofs},
	} {
		line := fmt.Sprintf("\nStates of blocks %d to %d%s", test.from, test.end-1, test.what)
		if !test.said {
			line = test.what
		}
		if strings.Contains(said, line) != test.said {
			t.Errorf("verify says %q of first blocks %d, %d and %d", said, first, state, proofs)
		}
	}
}

// checkPruneRefuses checks what cannot be done with the network of [TestPrune].
func checkPruneRefuses(t *testing.T, dir string) {
	t.Helper()
	prune := func(network string, keep retention.Window) error {
		return Prune{Data: dir, Network: network, Keep: keep}.Run(t.Context(), os.Stdout, os.Stderr)
	}
	if err := prune("small", retention.Window{Proofs: 3, State: 2}); err == nil || !strings.Contains(err.Error(), "a proof needs its state (want proofs of at most 2 blocks)") {
		t.Errorf("more proofs than states: %v", err)
	}
	if err := prune("other", retention.Window{Proofs: 3}); err == nil || store.Dir(dir).Has("other") {
		t.Errorf("a network that does not exist: %v", err)
	}
	demoOf(t, named(t, "starknet"), dir, "events", 8)
	if err := prune("events", retention.Window{History: 3}); !errors.Is(err, errNotPruned) {
		t.Errorf("a network without state: %v, want %v", err, errNotPruned)
	}
	held, err := store.Dir(dir).OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := prune("small", retention.Window{Proofs: 3}); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("an open store: %v, want ErrInUse", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
