package pebble_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestDiskFull fills the disk in the middle of a store's life. Writes return the
// cause, from the first that notices on; reads go on; nothing that was synced is
// lost; nobody waits for ever.
func TestDiskFull(t *testing.T) {
	for name, o := range modes() {
		for _, file := range []string{".log", ".sst", "MANIFEST", ""} {
			if file == ".log" && o.BulkLoad {
				continue // nothing is written to it
			}
			t.Run(name+"/"+file, func(t *testing.T) { testDiskFull(t, o, file) })
		}
	}
}

func testDiskFull(t *testing.T, o pebble.Options, file string) {
	ctx := context.Background()
	disk := vfs.NewCrashableMem()
	var full atomic.Bool
	o.Path = "store"
	o.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, file) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, o)
	put(t, s, "before", 1, []byte("kept"))
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	b := s.NewBatch()
	var err error
	for n := uint64(0); err == nil; n++ {
		if n == 10_000 {
			t.Fatal("10,000 writes and syncs to a full disk without an error")
		}
		b.Reset()
		b.Put(rows, []byte("after"), n, make([]byte, 64<<10))
		if err = s.Write(ctx, b); err == nil && n%16 == 15 {
			err = s.Sync(ctx)
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, kv.ErrFull) || !errors.Is(err, kv.ErrFailed) || !strings.Contains(err.Error(), "store/") {
		t.Errorf("got %v, expected that the disk is full, and the path of a file", err)
	}
	for what, err := range map[string]error{
		"Write": s.Write(ctx, b), "Sync": s.Sync(ctx), "Compact": s.Compact(ctx),
		"CompareAndSet": s.CompareAndSet(ctx, "p", nil, []byte("x")),
	} {
		if err == nil {
			t.Errorf("%s after the failure: no error", what)
		}
	}
	if v, err := s.Get(ctx, rows, []byte("before"), 1, nil); err != nil || string(v) != "kept" {
		t.Errorf("read after the failure: %q, %v", v, err)
	}
	if err := s.Close(); err == nil {
		t.Error("Close after the failure: no error")
	}
	if _, err := s.Get(ctx, rows, []byte("before"), 1, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
	after := o
	after.FS = disk.CrashClone(vfs.CrashCloneCfg{})
	again := open(t, after)
	if v, err := again.Get(ctx, rows, []byte("before"), 1, nil); err != nil || string(v) != "kept" {
		t.Errorf("read after opening again: %q, %v", v, err)
	}
	closeStore(t, again)
}

// TestReadError has reads fail on the disk: the error comes back, nothing else
// happens, and when the disk is well again so is the store.
func TestReadError(t *testing.T) {
	ctx := context.Background()
	var broken atomic.Bool
	cause := errors.New("unreadable")
	o := pebble.Options{Path: "store", Options: kv.Options{CacheBytes: 1}}
	o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.Contains(op.Path, ".sst") {
			return cause
		}
		return nil
	}))
	s := open(t, o)
	defer closeStore(t, s)
	for n := range uint64(200) {
		put(t, s, "p", n, make([]byte, 10_000))
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	got, getErr := s.Get(ctx, rows, []byte("p"), 100, []byte("dst"))
	newest, _, newestErr := s.Newest(ctx, rows, []byte("p"), 100, []byte("dst"))
	for what, err := range map[string]error{
		"Get": getErr, "Newest": newestErr, "Scan": scanError(s.Scan(ctx, rows, []byte("p"), 0, 1000)),
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, expected the disk's error", what, err)
		}
	}
	if string(got) != "dst" || string(newest) != "dst" {
		t.Errorf("Get and Newest returned %d and %d bytes beside an error, expected dst unchanged", len(got), len(newest))
	}
	broken.Store(false)
	if v, err := s.Get(ctx, rows, []byte("p"), 100, nil); err != nil || len(v) != 10_000 {
		t.Errorf("when the disk is well again: %d bytes, %v", len(v), err)
	}
	put(t, s, "p", 1000, nil)
}

func scanError(c kv.Cursor) error {
	for c.Next() {
	}
	return c.Close()
}
