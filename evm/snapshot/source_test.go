package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
)

// TestOtherSource: what was written of a snapshot that ended early is not proven, so a snapshot of
// the same block with other contents does not continue with it.
func TestOtherSource(t *testing.T) {
	m := newMaker(t)
	good := m.made(headNumber, startNumber)
	lying := newForged(t, contents(t, good))
	lying.edit("accounts", 0, func(raw []byte) []byte {
		raw[32+1+1]++ // the nonce of the first account
		return raw
	})
	last := len(lying.chunks("accounts")) - 1
	if err := os.Remove(filepath.Join(lying.folder, lying.name("accounts", last))); err != nil {
		t.Fatal(err)
	}
	store := ingesttest.Store(t)
	if _, err := m.load(t.Context(), store, lying.folder, headNumber); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a snapshot that ends early: %v", err)
	}
	a, err := m.load(t.Context(), store, good, headNumber)
	if err == nil {
		m.check(store, a, headNumber, startNumber)
	}
	if !errors.Is(err, archive.ErrStarting) {
		t.Errorf("continue with another snapshot: %v, want ErrStarting", err)
	}
}
