package kvtest

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ashlar/kv"
)

// RunCheckpoint runs the suite of engines that implement [kv.Checkpointer]. open opens
// the store in a directory, or makes one there.
func RunCheckpoint(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T, dir string) kv.Store)
	}{
		{"Contents", testCheckpointContents},
		{"WhileWriting", testCheckpointWhileWriting},
		{"Left", testCheckpointLeft},
		{"Outlives", testCheckpointOutlives},
		{"Apart", testCheckpointApart},
		{"Refused", testCheckpointRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

// checkpoint makes a copy, moves its files to a directory of their own, and returns that.
func checkpoint(t *testing.T, s kv.Store) (dir string) {
	t.Helper()
	return checkpointFor(t, s, "test")
}

func checkpointFor(t *testing.T, s kv.Store, purpose string) (dir string) {
	t.Helper()
	made, release, err := s.(kv.Checkpointer).Checkpoint(t.Context(), purpose)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := errors.Join(os.CopyFS(dir, os.DirFS(made)), release()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a released copy: %v, expected no directory", err)
	}
	return dir
}

// testCheckpointContents compares copies with what the store held, across compactions and
// further writes.
func testCheckpointContents(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	s := open(t, t.TempDir())
	defer closeStore(t, s)
	c, m := newChooser(7), newModel()
	for round := range 3 {
		for range 20 {
			c.write(t, s, m)
		}
		if round == 1 {
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		dir := checkpoint(t, s)
		put(t, s, row{versions, "later", uint64(round), "not in the copy"})
		copied := open(t, dir)
		m.checkAll(t, copied)
		expect(t, "a later row", get(copied, versions, "later", uint64(round)), notFound)
		put(t, copied, row{versions, "copy", 1, "a copy takes writes"})
		closeStore(t, copied)
		m.put(row{versions, "later", uint64(round), "not in the copy"})
		m.checkAll(t, s)
	}
}

// testCheckpointWhileWriting copies a store while batches are written, each with a row and
// a pointer to it: the copy has all rows up to the pointer, and no others.
func testCheckpointWhileWriting(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	s := open(t, t.TempDir())
	defer closeStore(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	begun := make(chan struct{})
	writing.Go(func() {
		for n := uint64(1); ctx.Err() == nil; n++ {
			b := s.NewBatch()
			b.Put(list, []byte("p"), n, make([]byte, 100))
			b.SetPointer("last", binary.BigEndian.AppendUint64(nil, n))
			if err := s.Write(context.Background(), b); err != nil {
				t.Error(err)
				return
			}
			if n == 100 {
				close(begun)
			}
		}
	})
	<-begun
	dirs := []string{checkpoint(t, s), checkpoint(t, s), checkpoint(t, s)}
	stop()
	writing.Wait()
	least := uint64(100)
	for _, dir := range dirs {
		copied := open(t, dir)
		value, err := copied.Pointer(t.Context(), "last")
		if err != nil {
			t.Fatal(err)
		}
		last := binary.BigEndian.Uint64(value)
		if last < least {
			t.Errorf("a copy ends with row %d, expected %d or later", last, least)
		}
		least = last
		rows := uint64(0)
		cursor := copied.Scan(t.Context(), list, []byte("p"), 0, ^uint64(0))
		for cursor.Next() {
			rows++
		}
		if err := cursor.Close(); err != nil || rows != last {
			t.Errorf("a copy has %d rows and points to row %d, %v", rows, last, err)
		}
		closeStore(t, copied)
	}
}

// testCheckpointLeft opens a store whose process was killed while there was a copy of it: a directory with the same files, which
// belong to nobody.
func testCheckpointLeft(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	dir, killed := t.TempDir(), t.TempDir()
	s := open(t, dir)
	put(t, s, row{list, "p", 1, "1"})
	left, release, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := errors.Join(os.CopyFS(killed, os.DirFS(dir)), release()); err != nil {
		t.Fatal(err)
	}
	rest, err := filepath.Rel(dir, left)
	if err != nil {
		t.Fatal(err)
	}
	left = filepath.Join(killed, rest)
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(filepath.Dir(left))); err != nil {
		t.Fatal(err)
	}
	s = open(t, killed)
	defer closeStore(t, s)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a copy that was left: %v, expected no directory", err)
	}
	expect(t, "a row", get(s, list, "p", 1), `"1"`)
	if err := os.CopyFS(filepath.Dir(left), os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	if err := s.(kv.Checkpointer).CopiedElsewhere(); err != nil {
		t.Errorf("a copy whose process was killed: %v, expected that it belongs to no process", err)
	}
	checkpoint(t, s)
}

// testCheckpointOutlives closes a store while there is a copy of it, and opens, changes and compacts it anew. The copy stays as it
// was, and the only one for its purpose, until it is released.
func testCheckpointOutlives(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, row{list, "p", 1, "1"})
	if err := s.Compact(t.Context()); err != nil { // so that the copy shares a table with the store
		t.Fatal(err)
	}
	made, release, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, dir)
	for n := uint64(2); n < 20; n++ {
		put(t, s, row{list, "p", n, "later"})
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test"); !errors.Is(err, kv.ErrCheckpoint) {
		t.Errorf("a second copy: %v, expected ErrCheckpoint", err)
	}
	checkpointFor(t, s, "other")
	if err := s.(kv.Checkpointer).CopiedElsewhere(); !errors.Is(err, kv.ErrCheckpoint) {
		t.Errorf("a copy that was made before: %v, expected ErrCheckpoint", err)
	}
	closeStore(t, s)
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	copied := open(t, kept)
	expect(t, "a row of the copy", get(copied, list, "p", 1), `"1"`)
	expect(t, "a later row of the copy", get(copied, list, "p", 2), notFound)
	closeStore(t, copied)
	if err := errors.Join(release(), release()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a released copy: %v, expected no directory", err)
	}
	s = open(t, dir)
	defer closeStore(t, s)
	expect(t, "a later row", get(s, list, "p", 2), `"later"`)
	checkpoint(t, s)
}

// testCheckpointApart makes copies for two purposes: each stays until it is released, as of its
// own moment.
func testCheckpointApart(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	s := open(t, t.TempDir())
	defer closeStore(t, s)
	put(t, s, row{list, "p", 1, "1"})
	first, releaseFirst, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, row{list, "p", 2, "2"})
	second, releaseSecond, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(dir, later string) {
		t.Helper()
		kept := t.TempDir()
		if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		copied := open(t, kept)
		defer closeStore(t, copied)
		expect(t, "a row", get(copied, list, "p", 1), `"1"`)
		expect(t, "a later row", get(copied, list, "p", 2), later)
	}
	check(first, notFound)
	if err := releaseFirst(); err != nil {
		t.Fatal(err)
	}
	check(second, `"2"`)
	if err := s.(kv.Checkpointer).CopiedElsewhere(); err != nil {
		t.Errorf("the store's own copy: %v, expected that it belongs to no other process", err)
	}
	if err := releaseSecond(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{first, second} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a released copy: %v, expected no directory", err)
		}
	}
	for _, purpose := range []string{"", "../p", "P"} {
		if _, _, err := s.(kv.Checkpointer).Checkpoint(t.Context(), purpose); err == nil {
			t.Errorf("a copy for %q was made", purpose)
		}
	}
}

// testCheckpointRefused makes a second copy for a purpose, and one of a closed store.
func testCheckpointRefused(t *testing.T, open func(t *testing.T, dir string) kv.Store) {
	s := open(t, t.TempDir())
	made, release, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test"); !errors.Is(err, kv.ErrCheckpoint) {
		t.Errorf("a second copy: %v, expected ErrCheckpoint", err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Errorf("the first copy after a second one was refused: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	checkpoint(t, s)
	closeStore(t, s)
	if _, _, err := s.(kv.Checkpointer).Checkpoint(t.Context(), "test"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a copy of a closed store: %v, expected ErrClosed", err)
	}
	if err := s.(kv.Checkpointer).CopiedElsewhere(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("copies of a closed store: %v, expected ErrClosed", err)
	}
}
