package pebble_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"
)

// TestMissingFile opens a store from which a file is missing, one after the other. It is refused, and
// no file of it changes, or it has all of its rows.
func TestMissingFile(t *testing.T) {
	whole := t.TempDir()
	s := open(t, pebble.Options{Path: whole, Options: kv.Options{BulkLoad: true}})
	put(t, s, "a", 1, []byte("value"))
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	put(t, s, "b", 1, []byte("value"))
	closeStore(t, s)
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range entries {
		name, _, _ := strings.Cut(missing.Name(), ".00") // the rest is a number
		t.Run(name, func(t *testing.T) { testMissingFile(t, whole, missing.Name()) })
	}
}

func testMissingFile(t *testing.T, whole, missing string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, missing)); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	s, err := pebble.Open(pebble.Options{Path: dir})
	if err != nil {
		if after := contents(t, dir); after != before {
			t.Errorf("the store was refused: %v; its files are\n%s\nexpected\n%s", err, after, before)
		}
		return
	}
	defer closeStore(t, s)
	for _, partition := range []string{"a", "b"} {
		if _, err := s.Get(context.Background(), rows, []byte(partition), 1, nil); err != nil {
			t.Errorf("row %q: %v; the store has now\n%s\nexpected, or a refusal, of\n%s", partition, err, contents(t, dir), before)
		}
	}
}
