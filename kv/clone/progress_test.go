package clone

import (
	"bytes"
	"context"
	"testing"

	"ashlar/kv"
)

// watched is the place of a copy. It compares the progress with what was written there.
type watched struct {
	kv.Store
	t       *testing.T
	shown   *Progress
	written uint64 // rows
	writes  int    // with rows
}

type watchedBatch struct {
	kv.Batch
	rows *uint64
}

func (b watchedBatch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	*b.rows++
	b.Batch.Put(t, partition, sort, value)
}

func (w *watched) NewBatch() kv.Batch { return watchedBatch{w.Store.NewBatch(), new(uint64)} }

func (w *watched) Write(ctx context.Context, b kv.Batch) error {
	of := b.(watchedBatch)
	stage, share, rows, _ := w.shown.Now()
	switch {
	case stage == nil:
		w.t.Error("nothing is shown while rows are written")
	case stage.Task == "copying" && (rows != w.written || share == 1):
		w.t.Errorf("%s %s: %d rows and a share of %v are shown, %d rows were written", stage.Task, stage.Table, rows, share, w.written)
	}
	if *of.rows > 0 {
		w.writes++
	}
	w.written += *of.rows
	return w.Store.Write(ctx, of.Batch)
}

// Sync is called when all rows were written, and again at the end.
func (w *watched) Sync(ctx context.Context) error {
	if stage, share, rows, _ := w.shown.Now(); stage.Task == "copying" && (rows != w.written || share != 1) {
		w.t.Errorf("at the end %d rows and a share of %v are shown, %d rows were written", rows, share, w.written)
	}
	return w.Store.Sync(ctx)
}

// TestProgressOfWrites: the progress of a copy is that of the rows at their new place. They are read long before if that
// place is slower, as a cluster is.
func TestProgressOfWrites(t *testing.T) {
	from := original(t)
	for sort := range uint64(24) {
		b := from.NewBatch()
		b.Put(versions, []byte("large"), sort, bytes.Repeat([]byte{byte(sort)}, 1<<20))
		if err := from.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	shown := new(Progress)
	to := &watched{Store: open(t), t: t, shown: shown}
	if _, err := Run(t.Context(), from, to, Options{Tables: tables(), Progress: shown}); err != nil {
		t.Fatal(err)
	}
	if to.writes < 5 {
		t.Errorf("%d writes, expected several of one table", to.writes)
	}
}
