package archive_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/history/retention"
	"ashlar/kv"
	"ashlar/kv/kvtest"
)

// walked checks where walks begin that continue others.
type walked struct {
	kv.Store
	t     *testing.T
	again int
	last  string
}

func (w *walked) WalkAfter(ctx context.Context, table *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	if after != nil {
		w.again++
		if place := fmt.Sprintf("%s %x", table.Name, after); place == w.last {
			w.t.Errorf("two walks begin after %s: the second reads past what was removed", place)
		} else {
			w.last = place
		}
		if _, _, err := w.Newest(ctx, table, after, ^uint64(0), nil); err != nil {
			w.t.Errorf("a walk of %s begins after partition %x: %v", table.Name, after, err)
		}
	}
	return w.Store.WalkAfter(ctx, table, after, from)
}

// TestWindowWalks: a removal in slices never walks twice over the same partitions, also where
// it has removed all of their rows. On a store that is written piecewise it has no slices: a walk
// reads pages of many rows, of which a slice would use a part.
func TestWindowWalks(t *testing.T) {
	const last = 200
	chain := archive.GrowChain(t, 1330, last)
	for _, piecewise := range []bool{false, true} {
		var store kv.Store = &walked{Store: chain.Between(t, 0, last), t: t}
		counted := store.(*walked)
		if piecewise {
			store = &kvtest.Piecewise{Store: store}
		}
		options := exact
		options.Work = 1 // each slice is one partition
		mustMove(t, openArchive(t, store), store, smallWindow, options)
		if piecewise && counted.again > 0 {
			t.Errorf("piecewise, the removal had %d slices, want none", counted.again)
		}
		if !piecewise && counted.again < 100 {
			t.Errorf("the removal had %d slices, want 100 or more", counted.again)
		}
	}
}

// compacted is a store that notes which tables are compacted, and fails to compact while it is told to.
type compacted struct {
	kv.Store
	tables []string
	err    error
}

func (c *compacted) Compact(ctx context.Context, tables ...*kv.Table) error {
	for _, t := range tables {
		c.tables = append(c.tables, t.Name)
	}
	return cmp.Or(c.err, c.Store.Compact(ctx, tables...))
}

// TestWindowCompacts: a table of which a removal leaves the smaller part is compacted, also if the removal was
// interrupted before that. Others are not.
func TestWindowCompacts(t *testing.T) {
	const last = 200
	chain := archive.GrowChain(t, 1360, last)
	store := &compacted{Store: chain.Between(t, 0, last)}
	a := openArchive(t, store)
	trieNodes := []string{"trie_nodes"}
	for _, test := range []struct {
		keep retention.Window
		err  error
		want []string
	}{
		{retention.Window{Proofs: 190}, nil, nil},
		{retention.Window{Proofs: 10}, errCut, trieNodes},
		{retention.Window{Proofs: 10}, nil, trieNodes}, // completes it
		{retention.Window{Proofs: 10}, nil, nil},
		{retention.Window{Proofs: 9}, nil, nil},
		{retention.Window{Proofs: 9, State: 20}, nil, []string{"accounts", "slots", "trace_postings"}},
	} {
		store.tables, store.err = nil, test.err
		if err := window.New(a, store, test.keep, exact).Move(t.Context()); !errors.Is(err, test.err) {
			t.Fatal(err)
		}
		if !slices.Equal(store.tables, test.want) {
			t.Errorf("%+v: %v were compacted, want %v", test.keep, store.tables, test.want)
		}
	}
}

// TestWindowForgetsNothing: a removal that was cut off is completed by the next one, which begins later.
func TestWindowForgetsNothing(t *testing.T) {
	const first, last = 120, 140
	chain := archive.GrowChain(t, 1370, last)
	for _, w := range []retention.Window{smallWindow, {Proofs: 20}} {
		want, disk := chain.Between(t, 0, last), chain.Between(t, 0, first)
		mustMove(t, openArchive(t, want), want, w, exact)
		cutOff := &cut{disk, 1} // after the window has moved, and before a row is removed
		if err := window.New(openArchive(t, cutOff), cutOff, w, exact).Move(t.Context()); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		a := openArchive(t, disk)
		chain.Append(t, a, last)
		mustMove(t, a, disk, w, exact)
		chain.CheckStates(t, a)
		got, fresh := rowsOf(t, disk), rowsOf(t, want)
		tables := archive.NamedTables()
		checkTurnover(t, got, fresh, false, tables.Accounts, tables.Slots, tables.TrieNodes)
		checkTurnover(t, got, fresh, false, append(tables.Own(), tables.Derived()...)...)
		checkTraceRows(t, chain, disk, a.Extent().State, last)
	}
}

// TestWindowIsStored: a window that the archive cannot have is refused.
func TestWindowIsStored(t *testing.T) {
	a := openArchive(t, archive.GrowChain(t, 1380, 20).Between(t, 0, 20))
	for _, e := range []archive.Extent{{Tries: 21}, {State: 21, Tries: 21}, {State: 5, Tries: 4}, {Blocks: 5, State: 4, Tries: 6}} {
		if err := a.SetFirst(t.Context(), e); err == nil {
			t.Errorf("it begins with %s now", e)
		}
	}
	if err := a.SetFirst(t.Context(), archive.Extent{State: 5, Tries: 20}); err != nil {
		t.Fatal(err)
	}
	if err := a.SetFirst(t.Context(), archive.Extent{State: 5, Tries: 19}); err == nil {
		t.Error("it begins with older trie nodes now")
	}
}

// weighed is a store that weighs what is written to it.
type weighed struct {
	kv.Store
	most int // bytes of a batch
}

func (w *weighed) Write(ctx context.Context, b kv.Batch) error {
	w.most = max(w.most, b.Bytes())
	return w.Store.Write(ctx, b)
}

// TestWindowBatches: a removal is written in small batches, also where each partition loses all
// of its rows.
func TestWindowBatches(t *testing.T) {
	const last, emptied, most = 100, 2000, 20 << 10
	disk := archive.GrowChain(t, 1340, last).Between(t, 0, last)
	b := disk.NewBatch()
	for i := range uint64(emptied) {
		b.Put(archive.NamedTables().TracePostings, binary.BigEndian.AppendUint64(make([]byte, 12), i), 1, []byte("row"))
	}
	if err := disk.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	measured := &weighed{Store: disk}
	store := &kvtest.Piecewise{Store: measured}
	mustMove(t, openArchive(t, store), store, smallWindow, exact)
	if measured.most > most {
		t.Errorf("a batch of %d bytes, want %d at most", measured.most, most)
	}
	for row, err := range disk.Walk(t.Context(), archive.NamedTables().TracePostings, 0) {
		if err != nil || row.Sort == 1 {
			t.Fatalf("a row of %x at %d is left, %v", row.Partition, row.Sort, err)
		}
	}
}
