package ingest_test

import (
	"errors"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/history/settling"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/core/types"
)

const sharedBlocks = 6

// newPiecewise returns a target whose store writes pointers after rows.
func newPiecewise(t *testing.T) (*followed, *kvtest.Piecewise) {
	genesis, _ := ingesttest.Crossing(t)
	f := &followed{target: newTargetOf(t, genesis), depths: ingest.Depths{Unfinalized: 4, Most: 100}}
	store := &kvtest.Piecewise{Store: f.store}
	f.store = store
	f.restart()
	return f, store
}

// crash ends the process when it has written rows of the unsettled blocks up to one, but not the pointer to it, and
// opens the target again.
func (f *followed) crash(store *kvtest.Piecewise, last uint64) {
	f.t.Helper()
	var lost []archive.Encoded
	for _, block := range f.tip.Unsettled(last) {
		lost = append(lost, block)
	}
	store.Crash = true
	if err := f.archive.AppendEncoded(f.t.Context(), lost...); !errors.Is(err, kvtest.ErrCrash) {
		f.t.Fatal(err)
	}
	store.Crash = false
	f.restart()
}

// TestCrashBeforeReorganization leaves rows of blocks whose place others take: a crash comes
// between their rows and the pointer, and then another branch is the head. The archive is
// row by row that of the other branch.
func TestCrashBeforeReorganization(t *testing.T) {
	_, left := ingesttest.Crossing(t)
	right := ingesttest.Diverging(t, sharedBlocks)
	f, store := newPiecewise(t)
	f.follow(left[:sharedBlocks+4]...)
	f.settle(sharedBlocks)

	f.crash(store, sharedBlocks+3)
	f.follow(right[sharedBlocks:]...)
	f.settle(uint64(len(right) - 4))
	last := right[len(right)-1]
	if err := f.follower.SetHead(t.Context(), last.Hash(), ref(last), ref(last)); err != nil {
		t.Fatal(err)
	}
	f.settle(last.NumberU64())
	checkRows(t, f.target, right)
}

// TestCrashBeforeReorganizations is TestCrashBeforeReorganization with so many branches in between
// that the tip drops the oldest ones.
func TestCrashBeforeReorganizations(t *testing.T) {
	_, left := ingesttest.Crossing(t)
	right := ingesttest.Diverging(t, sharedBlocks)
	f, store := newPiecewise(t)
	f.depths = ingest.Depths{Unfinalized: 4, Most: 4}
	f.restart()
	f.follow(left[:sharedBlocks+4]...)
	f.settle(sharedBlocks)

	f.crash(store, sharedBlocks+1)
	f.setHead(left[sharedBlocks-1])
	above := f.build(1)
	for later := range uint64(80) {
		f.setHead(above)
		f.build(later + 1)
	}
	f.setHead(left[sharedBlocks-1])
	f.follow(right[sharedBlocks:]...)
	last := right[len(right)-1]
	if err := f.follower.SetHead(t.Context(), last.Hash(), ref(last), ref(last)); err != nil {
		t.Fatal(err)
	}
	f.settle(last.NumberU64())
	checkRows(t, f.target, right)
}

// TestCrashOfImport interrupts an import. The same blocks can be written again; others are
// refused.
func TestCrashOfImport(t *testing.T) {
	_, left := ingesttest.Crossing(t)
	right := ingesttest.Diverging(t, sharedBlocks)
	f, store := newPiecewise(t)
	f.mustImport(left[:sharedBlocks])
	store.Crash = true
	if err := f.importer.Import(t.Context(), ingesttest.SourceOf(left[sharedBlocks:sharedBlocks+3])); !errors.Is(err, kvtest.ErrCrash) {
		t.Fatal(err)
	}
	store.Crash = false
	f.restart()
	if err := f.importer.Import(t.Context(), ingesttest.SourceOf(right[sharedBlocks:])); !errors.Is(err, settling.ErrLeft) {
		t.Errorf("other blocks: %v, expected ErrLeft", err)
	}
	f.restart()
	f.mustImport(left[sharedBlocks:])
	checkRows(t, f.target, left)
}

// checkRows compares a target's rows with those of imported blocks. Codes of other blocks may be left
// over, because a code does not belong to one block.
func checkRows(t *testing.T, g *target, blocks []*types.Block) {
	t.Helper()
	imported := newTargetOf(t, g.genesis)
	imported.mustImport(blocks)
	got, want := g.rows(), imported.rows()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("row %q: %x, expected %x", key, got[key], value)
		}
		delete(got, key)
	}
	for key := range got {
		if !strings.HasPrefix(key, "codes/") {
			t.Errorf("row %q is left over", key)
		}
	}
}
