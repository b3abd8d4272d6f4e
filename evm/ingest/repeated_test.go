package ingest_test

import (
	"errors"
	"slices"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/core/types"
)

// A source may repeat blocks that are still on their way into the archive, such as a file to which
// an export was appended that begins with the same blocks. Other blocks at their numbers are
// refused.
func TestRepeatedBlocks(t *testing.T) {
	blocks := ingesttest.Chain(t)
	g := newTarget(t)
	g.mustImport(slices.Concat(blocks[:20], blocks[5:30]))
	if settled, _ := g.archive.Settled(); settled.Hash != blocks[29].Hash() {
		t.Errorf("block %s is the last, expected 30", settled)
	}
	if skipped := g.importer.Progress().Skipped; skipped != 15 {
		t.Errorf("%d blocks were skipped, expected 15", skipped)
	}
	other := twice(blocks[33])
	err := g.importer.Import(t.Context(), ingesttest.SourceOf(slices.Concat(blocks[30:35], []*types.Block{other})))
	if !errors.Is(err, ingest.ErrOtherChain) {
		t.Errorf("another block at the number of one on its way: %v", err)
	}
}
