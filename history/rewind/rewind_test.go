package rewind_test

import (
	"context"
	"errors"
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

// TestReadersEndFirst takes a network back that another process reads, which notices some time after the epoch has become
// odd. Until its note is gone every row is there, so what it answers is right.
func TestReadersEndFirst(t *testing.T) {
	below, err := pebble.Open(pebble.Options{Path: "rows", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	b := below.NewBatch()
	for block := uint64(1); block <= 3; block++ {
		b.Put(table, []byte("account"), block, []byte("value"))
	}
	rows.SetSettled(b, chain.Ref{Number: 3, Hash: common.Hash{3}})
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	plan := rewind.Plan{
		To: 1, Tables: []*kv.Table{table},
		Hash: func(context.Context) (common.Hash, error) { return common.Hash{1}, nil },
	}
	if _, err := rewind.Run(t.Context(), &watched{Store: below, t: t, left: 3}, plan, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := below.Get(t.Context(), table, []byte("account"), 3, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a row of a removed block: %v, expected none", err)
	}
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
