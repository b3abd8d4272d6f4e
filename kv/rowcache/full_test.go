package rowcache_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/kv/rowcache"
)

// TestFullDiskAtTheStart: while the disk of the cache is full, a reader answers without it, and says that it keeps no rows. It
// keeps them once there is space, those of an earlier process too.
func TestFullDiskAtTheStart(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before=%v", before), func(t *testing.T) { testFullDisk(t, before) })
	}
}

func testFullDisk(t *testing.T, before bool) {
	below := open(t)
	b := below.NewBatch()
	for sort := range uint64(10) {
		b.Put(named, []byte("p"), sort, fmt.Append(nil, sort))
	}
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var full atomic.Bool
	o := rowcache.Options{Bytes: 1, Disk: rowcache.DiskOptions{
		Dir: t.TempDir(), Bytes: rowcache.LeastDiskBytes, Store: "x", Retry: time.Millisecond,
		Open: func(dir string, o kv.Options) (kv.Store, error) {
			if full.Load() {
				return nil, fmt.Errorf("%w: %w", kv.ErrFull, &fs.PathError{Op: "write", Path: filepath.Join(dir, "CURRENT"), Err: syscall.ENOSPC})
			}
			return embedded(dir, o)
		},
	}}
	read := func(cached *rowcache.Store) (misses int64) {
		t.Helper()
		earlier := cached.Stats().CacheMisses
		for sort := range uint64(10) {
			if got, want := get(cached, named, []byte("p"), sort), get(below, named, []byte("p"), sort); got != want {
				t.Errorf("row %d: %s, want %s", sort, got, want)
			}
		}
		await.Until(t, "an empty queue", func() bool { return cached.Queued() == 0 })
		return cached.Stats().CacheMisses - earlier
	}
	keeps := func(cached *rowcache.Store) bool { kept := cached.Stats().KeepsRows; return kept != nil && *kept }
	if before {
		cached := cache(t, below, o)
		cached.Follow(9, nil)
		read(cached)
		if err := cached.Close(); err != nil {
			t.Fatal(err)
		}
	}
	full.Store(true)
	cached := cache(t, below, o)
	defer func() {
		if err := cached.Close(); err != nil {
			t.Error(err)
		}
	}()
	cached.Follow(9, nil)
	if misses := read(cached); misses != 10 || keeps(cached) {
		t.Errorf("on a full disk: %d reads of the store, want 10; keeps rows: %v", misses, keeps(cached))
	}
	full.Store(false)
	await.Until(t, "rows to be kept", func() bool { read(cached); return keeps(cached) })
	await.Until(t, "all rows to be found on disk", func() bool { return read(cached) == 0 })
}

// TestNothingKeptOnDisk: without a directory there is nothing to be said of it.
func TestNothingKeptOnDisk(t *testing.T) {
	if kept := cache(t, open(t), rowcache.Options{}).Stats().KeepsRows; kept != nil {
		t.Errorf("keeps rows: %v, want nil", *kept)
	}
}
