package archive_test

import (
	"errors"
	"testing"

	"ashlar/evm/archive"
	"ashlar/history/retention"
)

// TestWindowAfterOlder moves the first block of an archive to which older blocks were added. Once they are removed nothing of them
// is left, so a check must look at all rows below the first block. Those of an addition that was interrupted are left.
func TestWindowAfterOlder(t *testing.T) {
	chain := archive.GrowChain(t, 1297, 120)
	for _, interrupted := range []bool{false, true} {
		store := chain.Between(t, 60, 120)
		if err := chain.AddOlder(t.Context(), store, 50); err != nil {
			t.Fatal(err)
		}
		if interrupted {
			if err := chain.AddOlder(t.Context(), &cut{store, 2}, 40); !errors.Is(err, errCut) {
				t.Fatal(err)
			}
		}
		a := openArchive(t, store)
		mustMove(t, a, store, retention.Window{State: 20, History: 30}, exact)
		want := a.Extent().Blocks
		if interrupted {
			want = 40
		}
		if under, err := a.OlderUnder(t.Context()); err != nil || under != want || a.Extent().Blocks <= 60 {
			t.Errorf("interrupted: %v: it begins with %v, and blocks from %d on may have rows, %v, want %d", interrupted, a.Extent(), under, err, want)
		}
	}
}
