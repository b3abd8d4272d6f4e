package ingest_test

import (
	"testing"

	"ashlar/evm/archive/window"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/history/retention"
)

// A source may begin with blocks that a window has removed.
func TestImportSkipsRemovedBlocks(t *testing.T) {
	g, blocks := newTarget(t), ingesttest.Chain(t)
	g.mustImport(blocks[:30])
	kept := retention.Window{Proofs: 5, State: 5, History: 5}
	if err := window.New(g.archive, g.store, kept, window.Options{Ancestors: 1}).Move(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first := g.archive.Extent().Blocks; first < 20 {
		t.Fatalf("the first block is %d", first)
	}
	g.mustImport(blocks)
	if done := g.importer.Progress(); done.Skipped != 30 || done.Head != uint64(len(blocks)) {
		t.Errorf("%d blocks were skipped up to %d, want 30 up to %d", done.Skipped, done.Head, len(blocks))
	}
}
