package query

import (
	"errors"
	"testing"

	"ashlar/evm/archive"
	"ashlar/history/paging"

	"github.com/ethereum/go-ethereum/common"
)

// wantPruned checks that an error names the first block.
func wantPruned(t *testing.T, what string, err error, first uint64) {
	t.Helper()
	if pruned := (*archive.Pruned)(nil); !errors.As(err, &pruned) || pruned.First != first {
		t.Errorf("%s: %v, want a Pruned that names block %d", what, err, first)
	}
}

// TestLogPageBehindTheWindow: a page is refused if its range begins below the first block, also
// if that moves while the page is read.
func TestLogPageBehindTheWindow(t *testing.T) {
	c := newLogChain(t, 6, 60)
	all := paging.Range{To: c.head.Number, Size: len(c.logs)}
	moved := false
	_, err := c.LogPage(t.Context(), &Filter{Addresses: []common.Address{{}}}, all, func(*Log) error {
		if moved {
			return nil
		}
		moved = true
		return c.chain.archive.SetFirst(t.Context(), archive.Extent{Blocks: 20, State: 30})
	})
	wantPruned(t, "moved", err, 20)
	visit := func(*Log) error { return nil }
	for _, f := range []*Filter{{}, {Addresses: []common.Address{{}}}} {
		for _, begin := range []uint64{0, 1, 19} {
			below := all
			below.Begin.Block = begin
			_, err := c.LogPage(t.Context(), f, below, visit)
			wantPruned(t, "below", err, 20)
		}
		within := all
		within.Begin.Block = 20
		if _, err := c.LogPage(t.Context(), f, within, visit); err != nil {
			t.Errorf("from the first block on: %v", err)
		}
	}
}
