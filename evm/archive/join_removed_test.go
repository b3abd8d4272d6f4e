package archive_test

import (
	"errors"
	"fmt"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/history/retention"

	"github.com/ethereum/go-ethereum/crypto"
)

// TestJoinedBelowUnread adds a range below another one in which older blocks were being added, or older history was being
// removed, when the process was killed. The rows that nothing reads there are known in the joined archive, too.
func TestJoinedBelowUnread(t *testing.T) {
	chain := archive.GrowChain(t, 1290, 120)
	t.Run("addition", func(t *testing.T) {
		lower, upper := chain.Between(t, 60, 81), chain.Between(t, 81, 120)
		if err := chain.AddOlder(t.Context(), &cut{lower, 2}, 50); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		mustJoin(t, upper, lower)
		a := openArchive(t, upper)
		if under, err := a.OlderUnder(t.Context()); err != nil || under != 50 || a.Extent().Blocks != 60 {
			t.Errorf("it begins with %v, and blocks from %d on may have rows, %v, want 50", a.Extent(), under, err)
		}
	})
	for _, writes := range []int{1, 2, 4, 1 << 20} {
		t.Run(fmt.Sprint("window ", writes), func(t *testing.T) {
			lower, upper := chain.Between(t, 0, 81), chain.Between(t, 81, 120)
			options := exact
			options.Work = 1
			store := &cut{lower, writes}
			if err := window.New(openArchive(t, store), store, retention.Window{State: 20, History: 30}, options).Move(t.Context()); err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			mustJoin(t, upper, lower)
			a := openArchive(t, upper)
			if _, there, err := a.Removed(t.Context()); err != nil || !there {
				t.Errorf("that older history was removed is not known, %v", err)
			}
			mustMove(t, a, upper, retention.Window{State: 59, History: 69}, exact)
			want := archive.Extent{Blocks: 52, State: 62, Tries: 62}
			if removed, _, err := a.Removed(t.Context()); err != nil || removed != want || a.Extent() != want {
				t.Errorf("it begins with %v, and all before %v is removed, %v, want %v", a.Extent(), removed, err, want)
			}
			checkBlockRows(t, chain, upper, want.Blocks, 120)
			checkTraceRows(t, chain, upper, want.State, 120)
			chain.CheckStates(t, a)
		})
	}
}

// TestJoinedCodes adds a range with a window above another one. Codes that no version of an account has any more, since
// these were removed, are not copied.
func TestJoinedCodes(t *testing.T) {
	chain := archive.GrowChain(t, 1295, 60)
	upper := chain.Between(t, 0, 60)
	batch := upper.NewBatch()
	codes := archive.NamedTables().Codes
	removed := crypto.Keccak256([]byte("removed"))
	batch.Put(codes, removed, 0, []byte("removed"))
	if err := upper.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	mustMove(t, openArchive(t, upper), upper, retention.Window{State: 30}, exact)
	lower := chain.Between(t, 0, 31)
	mustJoin(t, lower, upper)
	checkSameRows(t, rowsOf(t, chain.Between(t, 0, 60)), rowsOf(t, lower))
}

// TestJoinedIsExecuted joins two ranges and moves the first block with state. The blocks that either has executed are still
// known as executed.
func TestJoinedIsExecuted(t *testing.T) {
	chain := archive.GrowChain(t, 1296, 60)
	for _, first := range []uint64{0, 10} {
		for _, above := range []bool{true, false} {
			to, from := chain.Between(t, first, 20), chain.Between(t, 20, 60)
			if !above {
				to, from = from, to
			}
			mustJoin(t, to, from)
			a := openArchive(t, to)
			mustMove(t, a, to, retention.Window{State: 20}, exact)
			if a = openArchive(t, to); a.Extent().State != 41 || !a.Executed(first) || first > 0 && a.Executed(first-1) {
				t.Errorf("from block %d, above: %t: the first state is %d; executed: %t", first, above, a.Extent().State, a.Executed(first))
			}
		}
	}
}
