package settling_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/history/settling"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

var (
	versions = &kv.Table{ID: 0xfd, Name: "settling_versions", Kind: kv.Versions}
	events   = &kv.Table{ID: 0xfc, Name: "settling_events", Kind: kv.List, IndexBits: 4}
	// codes has rows that belong to no block, as those of contracts' codes.
	codes = &kv.Table{ID: 0xfb, Name: "settling_codes", Kind: kv.List}
)

func tables() []*kv.Table { return []*kv.Table{versions, events, codes} }

// ref returns a block reference from a number and a letter for the branch.
func ref(number uint64, branch byte) chain.Ref {
	return chain.Ref{Number: number, Hash: common.Hash{branch, byte(number)}}
}

// put puts the rows of a block. Each block has the same code.
func put(to kv.Putter, block chain.Ref) {
	to.Put(versions, []byte("account"), block.Number, []byte(block.String()))
	to.Put(events, []byte("chunk"), block.Number<<4|3, []byte(block.String()))
	to.Put(codes, []byte("code"), 0, []byte("code"))
}

// crashed returns a store whose last settled block is 10. Blocks 11 and 12 of the branch a are
// unsettled, and a crash left rows of both in the archive.
func crashed(t *testing.T) kv.Store {
	t.Helper()
	below, err := pebble.Open(pebble.Options{Path: "rows", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { below.Close() })
	store := &kvtest.Piecewise{Store: below}
	unsettled, err := tip.Open(t.Context(), store, tables(), ref(10, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	batch := store.NewBatch()
	put(batch, ref(10, 'a'))
	lost := []chain.Ref{ref(11, 'a'), ref(12, 'a')}
	for i, block := range lost {
		rows := new(tip.Rows)
		put(rows, block)
		put(batch, block)
		if err := unsettled.Add(t.Context(), block, ref(10+uint64(i), 'a').Hash, rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := settling.Begin(t.Context(), store, tables(), lost); err != nil {
		t.Fatal(err)
	}
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return store
}

// Before another block takes the place of a lost one, the rows of that block and of its descendants
// are removed, and no others. A code that a settled block has, too, stays.
func TestRowsOfLostBlocksAreRemoved(t *testing.T) {
	for _, c := range []struct {
		next []chain.Ref
		left string
	}{
		{[]chain.Ref{ref(11, 'a')}, "account 10, account 11, account 12, chunk 10, chunk 11, chunk 12, code 0"},
		{[]chain.Ref{ref(11, 'a'), ref(12, 'b')}, "account 10, account 11, chunk 10, chunk 11, code 0"},
		{[]chain.Ref{ref(11, 'b')}, "account 10, chunk 10, code 0"},
	} {
		t.Run(fmt.Sprint(c.next), func(t *testing.T) {
			store := crashed(t)
			if err := settling.Begin(t.Context(), store, tables(), c.next); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, table := range tables() {
				for row, err := range store.Walk(t.Context(), table, 0) {
					if err != nil {
						t.Fatal(err)
					}
					left = append(left, fmt.Sprintf("%s %d", row.Partition, table.BlockOf(row.Sort)))
				}
			}
			slices.Sort(left)
			if got := strings.Join(left, ", "); got != c.left {
				t.Errorf("left are %s, expected %s", got, c.left)
			}
		})
	}
}

// Blocks that were lost are remembered when only the first of them are written again: another block
// in the place of the last one is found.
func TestLostBlocksAreRemembered(t *testing.T) {
	store := crashed(t)
	for _, next := range []chain.Ref{ref(11, 'a'), ref(12, 'b')} {
		if err := settling.Begin(t.Context(), store, tables(), []chain.Ref{next}); err != nil {
			t.Fatal(err)
		}
	}
	if value, err := store.Get(t.Context(), events, []byte("chunk"), 12<<4|3, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("block 12 of the lost branch has the row %q, %v; expected none", value, err)
	}
}

// If a lost block is not among the unsettled ones, its rows are not known and nothing takes its place.
func TestUnknownLostBlock(t *testing.T) {
	store := crashed(t)
	if err := tip.Clear(t.Context(), store, ref(10, 'a')); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := settling.Begin(t.Context(), store, tables(), []chain.Ref{ref(11, 'b')}); !errors.Is(err, settling.ErrLeft) || !strings.Contains(err.Error(), "--to 10") {
			t.Errorf("another block: %v, expected ErrLeft and a rewind to block 10", err)
		}
	}
	if err := settling.Begin(t.Context(), store, tables(), []chain.Ref{ref(11, 'a')}); err != nil {
		t.Errorf("the same block: %v", err)
	}
}

// A block whose rows a crash left stays in the tip, so that its rows can still be removed. Other blocks do not.
func TestLostBlocksAreNotPruned(t *testing.T) {
	for _, c := range []struct {
		most int
		kept []chain.Ref
	}{
		{4, []chain.Ref{ref(11, 'a'), ref(12, 'a'), ref(11, 'c')}},
		{5, []chain.Ref{ref(11, 'a'), ref(12, 'a'), ref(11, 'b'), ref(11, 'c')}},
	} {
		store := crashed(t)
		of, err := tip.Open(t.Context(), store, tables(), ref(10, 'a'))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []chain.Ref{ref(11, 'b'), ref(11, 'c')} {
			rows := new(tip.Rows)
			put(rows, other)
			if err := of.Add(t.Context(), other, ref(10, 'a').Hash, rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := settling.Prune(t.Context(), of, c.most, ref(11, 'c').Hash); err != nil {
			t.Fatal(err)
		}
		for _, block := range []chain.Ref{ref(11, 'a'), ref(12, 'a'), ref(11, 'b'), ref(11, 'c')} {
			if of.Has(block.Hash) != slices.Contains(c.kept, block) {
				t.Errorf("with at most %d: block %s is there: %t", c.most, block, of.Has(block.Hash))
			}
		}
		if err := settling.Begin(t.Context(), store, tables(), []chain.Ref{ref(11, 'c')}); err != nil {
			t.Error(err)
		}
	}
}

// Blocks that were lost are remembered, too, when blocks below them are written again, with or without the first of them.
func TestLostBlocksAboveAreRemembered(t *testing.T) {
	for _, c := range []struct {
		again []chain.Ref
		other chain.Ref
	}{
		{[]chain.Ref{ref(10, 'a'), ref(11, 'a')}, ref(12, 'b')},
		{[]chain.Ref{ref(10, 'a')}, ref(11, 'b')},
	} {
		store := crashed(t)
		for _, next := range [][]chain.Ref{c.again, {c.other}} {
			if err := settling.Begin(t.Context(), store, tables(), next); err != nil {
				t.Fatal(err)
			}
		}
		if value, err := store.Get(t.Context(), events, []byte("chunk"), 12<<4|3, nil); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("after %v and %s, block 12 of the lost branch has the row %q, %v; expected none", c.again, c.other, value, err)
		}
	}
}

// After a rewind, which removes all rows, no blocks are remembered.
func TestForget(t *testing.T) {
	store := crashed(t)
	if err := tip.Clear(t.Context(), store, ref(10, 'a')); err != nil {
		t.Fatal(err)
	}
	batch := store.NewBatch()
	settling.Forget(batch)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for _, next := range [][]chain.Ref{nil, {ref(11, 'b')}, nil} {
		if err := settling.Begin(t.Context(), store, tables(), next); err != nil {
			t.Errorf("write %v: %v", next, err)
		}
	}
}

// piecewise is a failing store whose writes are applied in pieces.
type piecewise struct{ *kvtest.Failing }

func (piecewise) Piecewise() {}

// Nothing is written in the place of a lost block unless its rows are known to be removed, and what is being written is durably
// remembered.
func TestFailuresAreReported(t *testing.T) {
	for n := 0; ; n++ {
		store := piecewise{&kvtest.Failing{Store: crashed(t), Left: n}}
		err := settling.Begin(t.Context(), store, tables(), []chain.Ref{ref(11, 'b')})
		if store.Left >= 0 { // all succeeded
			if err != nil || n == 0 || store.Unsynced > 0 {
				t.Errorf("after %d operations: %v, %d writes are not durable", n, err, store.Unsynced)
			}
			break
		}
		if !errors.Is(err, kvtest.ErrBroken) {
			t.Errorf("operation %d fails: %v, expected %v", n, err, kvtest.ErrBroken)
		}
	}
	store := piecewise{&kvtest.Failing{Store: crashed(t), Left: -1}}
	of, err := tip.Open(t.Context(), store, tables(), ref(10, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	store.Left = 0
	if err := settling.Prune(t.Context(), of, 0, ref(10, 'a').Hash); !errors.Is(err, kvtest.ErrBroken) || !of.Has(ref(12, 'a').Hash) {
		t.Errorf("Prune without knowing which blocks to keep: %v, expected %v", err, kvtest.ErrBroken)
	}
	batch := store.NewBatch()
	batch.SetPointer("settling", []byte("damaged"))
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := settling.Begin(t.Context(), store, tables(), []chain.Ref{ref(11, 'b')}); err == nil {
		t.Error("a damaged pointer is taken for none")
	}
}
