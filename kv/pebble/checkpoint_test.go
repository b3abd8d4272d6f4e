package pebble_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestCheckpoint(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			kvtest.RunCheckpoint(t, func(t *testing.T, dir string) kv.Store {
				o.Path = dir
				return open(t, o)
			})
		})
	}
}

// TestCheckpointShares checks that the tables of a copy take no space of their own.
func TestCheckpointShares(t *testing.T) {
	o := pebble.Options{Path: t.TempDir()}
	s := open(t, o)
	defer closeStore(t, s)
	put(t, s, "a", 1, []byte("value"))
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, release, err := s.Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables of the copy: %v, %v", tables, err)
	}
	for _, table := range tables {
		copied, copiedErr := os.Stat(table)
		stored, storedErr := os.Stat(filepath.Join(o.Path, filepath.Base(table)))
		if err := errors.Join(copiedErr, storedErr); err != nil || !os.SameFile(copied, stored) {
			t.Errorf("table %s is not shared with the store, %v", table, err)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// linkless is a disk without hard links, such as exFAT, as Linux reports it.
type linkless struct{ vfs.FS }

func (linkless) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

// TestCheckpointWithoutLinks checks that files are copied if they cannot be linked.
func TestCheckpointWithoutLinks(t *testing.T) {
	s := open(t, pebble.Options{Path: t.TempDir(), FS: linkless{vfs.Default}})
	put(t, s, "a", 1, []byte("value"))
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, release, err := s.Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	copied := open(t, pebble.Options{Path: dir})
	if got, err := copied.Get(t.Context(), rows, []byte("a"), 1, nil); err != nil || string(got) != "value" {
		t.Errorf("a row of the copy: %q, %v", got, err)
	}
	closeStore(t, copied)
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestCheckpointFails checks that a copy that cannot be written is an error, and that the
// store takes writes and copies afterwards.
func TestCheckpointFails(t *testing.T) {
	ctx := context.Background()
	failing := false
	broken := errors.New("broken")
	o := pebble.Options{Path: t.TempDir()}
	o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing && op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "checkpoint") {
			return broken
		}
		return nil
	}))
	s := open(t, o)
	defer closeStore(t, s)
	put(t, s, "a", 1, []byte("before"))
	failing = true
	if _, _, err := s.Checkpoint(ctx, "test"); !errors.Is(err, broken) {
		t.Errorf("a copy that cannot be written: %v, expected the disk's error", err)
	}
	failing = false
	put(t, s, "a", 2, []byte("after"))
	if err := s.Sync(ctx); err != nil {
		t.Error(err)
	}
	_, release, err := s.Checkpoint(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestLock checks that a locked directory cannot be opened, and an open store not locked.
func TestLock(t *testing.T) {
	o := pebble.Options{Path: t.TempDir()}
	s := open(t, o)
	if _, err := pebble.Lock(o.Path); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("lock of an open store: %v, expected ErrInUse", err)
	}
	closeStore(t, s)
	lock, err := pebble.Lock(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pebble.Open(o); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("open of a locked directory: %v, expected ErrInUse", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, o))
}
