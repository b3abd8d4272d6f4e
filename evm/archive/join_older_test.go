package archive_test

import (
	"errors"
	"fmt"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/join"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"
)

func mustAddOlder(t *testing.T, chain archive.Chain, store kv.Store, from uint64) {
	t.Helper()
	if err := chain.AddOlder(t.Context(), store, from); err != nil {
		t.Fatal(err)
	}
}

// TestJoinedOlderBlocks joins ranges of which either has blocks that were added before its first one. The joined archive
// says that it begins with the earlier of these, so it has all blocks from there on.
func TestJoinedOlderBlocks(t *testing.T) {
	chain := archive.GrowChain(t, 1270, 40)
	for _, test := range []struct {
		name                string
		older, olderOfUpper uint64 // first blocks of the lower and the upper range
	}{
		{"of the upper range", 10, 3},
		{"of the upper range, to the genesis", 10, 1},
		{"of the upper range, inside the lower one", 10, 14},
		{"of both ranges", 4, 7},
	} {
		for _, above := range []bool{true, false} {
			t.Run(fmt.Sprint(test.name, " ", above), func(t *testing.T) {
				lower, upper := chain.Between(t, 10, 20), chain.Between(t, 20, 40)
				if test.older < 10 {
					mustAddOlder(t, chain, lower, test.older)
				}
				mustAddOlder(t, chain, upper, test.olderOfUpper)
				to, from := lower, upper
				if !above {
					to, from = upper, lower
				}
				mustJoin(t, to, from)
				want := archive.Extent{Blocks: min(test.older, test.olderOfUpper), State: 10, Tries: 10}
				if want.Blocks == 1 {
					want.Blocks = 0
				}
				if got := openArchive(t, to).Extent(); got != want {
					t.Errorf("it begins with %v, want %v", got, want)
				}
				checkBlockRows(t, chain, to, want.Blocks, 40)
				checkTraceRows(t, chain, to, want.State, 40)
			})
		}
	}
}

// TestKilledJoinOfOlderBlocks kills a join that adds older blocks at each of its writes. It is completed or given up, and
// then the rows that are left before the first block are known.
func TestKilledJoinOfOlderBlocks(t *testing.T) {
	raced.Skip(t)
	chain := archive.GrowChain(t, 1280, 24)
	upper := chain.Between(t, 16, 24)
	mustAddOlder(t, chain, upper, 2)
	whole := chain.Between(t, 10, 16)
	mustJoin(t, whole, upper)
	want := rowsOf(t, whole)
	kills := 0
	for killed := true; killed; kills++ {
		to := chain.Between(t, 10, 16)
		var store kv.Store = &cut{to, kills}
		if kills%2 == 1 {
			store = &kvtest.Piecewise{Store: store}
		}
		_, err := join.Run(t.Context(), store, upper, join.Options{BatchBytes: 8 << 10})
		if killed = errors.Is(err, errCut); !killed && err != nil {
			t.Fatal(err)
		}
		if killed && kills%3 == 2 {
			giveUpOlder(t, chain, to)
		}
		if killed {
			mustJoin(t, to, upper)
		}
		checkSameRows(t, want, rowsOf(t, to))
	}
	if kills < 8 {
		t.Errorf("the join has only %d writes", kills)
	}
}

// giveUpOlder takes an archive back to block 16, which begins with block 10 then. Rows of older blocks may be there, from
// block 2 on.
func giveUpOlder(t *testing.T, chain archive.Chain, store kv.Store) {
	t.Helper()
	if _, err := archive.Rewind(t.Context(), store, 16, nil); err != nil {
		t.Fatal(err)
	}
	a := openArchive(t, store)
	under, err := a.OlderUnder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	headers := archive.NamedTables().Headers
	for row, err := range store.Walk(t.Context(), headers, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Sort > 0 && row.Sort < under {
			t.Errorf("block %d has rows, and blocks from %d on may have some", row.Sort, under)
		}
	}
	chain.CheckStates(t, a)
}
