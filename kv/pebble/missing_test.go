package pebble_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
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

// opening is a disk on which another process opens the store just before its options are first read: it replaces them.
type opening struct {
	vfs.FS
	done bool
}

func (o *opening) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if !o.done && strings.HasPrefix(filepath.Base(name), "OPTIONS-") {
		o.done = true
		s, err := pebble.Open(pebble.Options{Path: filepath.Dir(name)})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	return o.FS.Open(name, options...)
}

// TestOpenWhileOpened: a store is opened while another process, such as a backup, opens it for a moment.
func TestOpenWhileOpened(t *testing.T) {
	dir := t.TempDir()
	closeStore(t, open(t, pebble.Options{Path: dir}))
	disk := &opening{FS: vfs.Default}
	s := open(t, pebble.Options{Path: dir, FS: disk})
	if !disk.done {
		t.Error("the options were not read")
	}
	closeStore(t, s)
}
