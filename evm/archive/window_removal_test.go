package archive_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
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
// it has removed all of their rows.
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
		if counted.again < 100 {
			t.Errorf("the removal had %d slices, want 100 or more", counted.again)
		}
	}
}

// compacted is a store that notes which tables are compacted.
type compacted struct {
	kv.Store
	tables []string
}

func (c *compacted) Compact(ctx context.Context, tables ...*kv.Table) error {
	for _, t := range tables {
		c.tables = append(c.tables, t.Name)
	}
	return c.Store.Compact(ctx, tables...)
}

// TestWindowCompacts: a table of which a removal leaves the smaller part is compacted, others are not.
func TestWindowCompacts(t *testing.T) {
	const last = 200
	chain := archive.GrowChain(t, 1360, last)
	store := &compacted{Store: chain.Between(t, 0, last)}
	a := openArchive(t, store)
	for _, test := range []struct {
		proofs uint64
		want   []string
	}{{190, nil}, {10, []string{"trie_nodes"}}, {9, []string{"trie_nodes"}}} {
		mustMove(t, a, store, window.Window{Proofs: test.proofs}, exact)
		if !slices.Equal(store.tables, test.want) {
			t.Errorf("with proofs of %d blocks %v were compacted, want %v", test.proofs, store.tables, test.want)
		}
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
		t.Fatalf("a row of %x at %d is left, %v", row.Partition, row.Sort, err)
	}
}
