package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

var table = &kv.Table{ID: 0xfd, Name: "rewind_versions", Kind: kv.Versions}

// indexed is a table with rows of a block in an order of their own.
var indexed = &kv.Table{ID: 0xfc, Name: "rewind_events", Kind: kv.List, IndexBits: 4}

// plan goes back to block 1.
func plan() rewind.Plan {
	return rewind.Plan{
		To: 1, Tables: []*kv.Table{table, indexed},
		Hash: func(context.Context) (common.Hash, error) { return common.Hash{1}, nil },
	}
}

// settled returns a store of settled blocks, with what put puts.
func settled(t *testing.T, last uint64, put func(kv.Batch)) kv.Store {
	store, err := pebble.Open(pebble.Options{Path: "rows", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	b := store.NewBatch()
	put(b)
	rows.SetSettled(b, chain.Ref{Number: last, Hash: common.Hash{byte(last)}})
	if err := store.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return store
}

// TestReadersEndFirst takes a network back that another process reads, which notices some time after the epoch has become
// odd. Until its note is gone every row is there, so what it answers is right.
func TestReadersEndFirst(t *testing.T) {
	below := settled(t, 3, func(b kv.Batch) {
		for block := uint64(1); block <= 3; block++ {
			b.Put(table, []byte("account"), block, []byte("value"))
		}
	})
	if _, err := rewind.Run(t.Context(), &watched{Store: below, t: t, left: 3}, plan(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := below.Get(t.Context(), table, []byte("account"), 3, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a row of a removed block: %v, expected none", err)
	}
}

// Rows of the blocks that stay are kept, also in partitions with so many later rows that these are
// removed at once.
func TestEarlierRowsStay(t *testing.T) {
	const last = 100
	store := settled(t, last, func(b kv.Batch) {
		for block := uint64(0); block <= last; block++ {
			b.Put(table, []byte("many"), block, []byte("value"))
			if block < 4 {
				b.Put(table, []byte("few"), block, []byte("value"))
			}
			for index := range uint64(3) {
				b.Put(indexed, []byte("chunk"), block<<4|index, []byte("value"))
			}
		}
	})
	done, err := rewind.Run(t.Context(), store, plan(), nil)
	if want := uint64(last - 1 + 2 + 3*(last-1)); err != nil || done.Rows != want {
		t.Errorf("%d rows are removed, %v, expected %d", done.Rows, err, want)
	}
	var left []string
	for _, of := range plan().Tables {
		for row, err := range store.Walk(t.Context(), of, 0) {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, fmt.Sprintf("%s %d.%d", row.Partition, row.Sort>>of.IndexBits, row.Sort&(1<<of.IndexBits-1)))
		}
	}
	slices.Sort(left)
	if want := []string{"chunk 0.0", "chunk 0.1", "chunk 0.2", "chunk 1.0", "chunk 1.1", "chunk 1.2", "few 0.0", "few 1.0", "many 0.0", "many 1.0"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, expected %q", left, want)
	}
}

// A crash while a block settled has left one of its rows at one of several nodes, where a walk by a quorum does not see it.
// It is removed too: else it would pass for a row of the next block.
func TestRowsAtOneNodeAreRemoved(t *testing.T) {
	left := kv.Row{Partition: []byte("account"), Sort: 4, Value: []byte("value")}
	store := &replicated{Store: settled(t, 3, func(b kv.Batch) { b.Put(table, left.Partition, left.Sort, left.Value) }), left: left}
	if done, err := rewind.Run(t.Context(), store, plan(), nil); err != nil || done.Rows != 1 {
		t.Errorf("%d rows are removed, %v, expected 1", done.Rows, err)
	}
	if _, err := store.Get(t.Context(), table, left.Partition, left.Sort, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the row that was left: %v, expected none", err)
	}
}

// replicated is a store in which one node has a row that the others lack.
type replicated struct {
	kv.Store
	left kv.Row
}

// Walk implements kv.Store.
func (r *replicated) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range r.Store.Walk(ctx, t, from) {
			if err == nil && t == table && row.Sort == r.left.Sort {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// WalkReplicas implements kv.Replicated.
func (r *replicated) WalkReplicas(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return r.Store.Walk(ctx, t, from)
}

// watched is a store with a board on which a reader has a note.
type watched struct {
	kv.Store
	t    *testing.T
	left int // how often the note is read before it is gone
}

// Post implements kv.Board.
func (w *watched) Post(context.Context, string, []byte, time.Duration) error { return nil }

// Posts implements kv.Board. Cassandra does not answer now and then.
func (w *watched) Posts(ctx context.Context) (map[string][]byte, error) {
	if _, removing, err := kv.Epoch(ctx, w); !removing || err != nil {
		w.t.Errorf("the readers are waited for before they can know of it: %v", err)
	}
	if w.left--; w.left < 0 {
		return nil, nil
	}
	if w.left == 1 {
		return nil, kv.ErrUnavailable
	}
	return map[string][]byte{"reader": {1}}, nil
}

// Write implements kv.Store.
func (w *watched) Write(ctx context.Context, b kv.Batch) error {
	err := w.Store.Write(ctx, b)
	if _, missing := w.Get(ctx, table, []byte("account"), 3, nil); w.left > 0 && missing != nil {
		w.t.Errorf("a row is gone while a reader may ask for it: %v", missing)
	}
	return err
}
