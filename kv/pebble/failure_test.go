package pebble_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// breaking returns a disk whose changes of some files fail with an error while broken is
// set. syncs says whether syncs fail, too.
func breaking(disk vfs.FS, file string, cause error, syncs bool) (fs vfs.FS, broken *atomic.Bool) {
	broken = new(atomic.Bool)
	return errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, file) && (syncs || !sync) {
			return cause
		}
		return nil
	})), broken
}

// TestDiskFails breaks the disk in the middle of a store's life. Writes return the
// cause, from the first that notices on; reads go on; nothing that was synced is
// lost; nobody waits for ever.
func TestDiskFails(t *testing.T) {
	eachFile(t, func(t *testing.T, o pebble.Options, file string) { testDiskFails(t, o, file, syscall.EIO) })
}

// TestSyncFails has syncs fail on a full disk, after which it is not known what is stored.
func TestSyncFails(t *testing.T) { testDiskFails(t, pebble.Options{}, "", syscall.ENOSPC) }

func eachFile(t *testing.T, test func(t *testing.T, o pebble.Options, file string)) {
	for name, o := range modes() {
		for _, file := range []string{".log", ".sst", "MANIFEST", ""} {
			if file == ".log" && o.BulkLoad {
				continue // nothing is written to it
			}
			t.Run(name+"/"+file, func(t *testing.T) { test(t, o, file) })
		}
	}
}

// writeUntilRefused writes rows until a write or a sync fails, and returns the batch that
// was written last.
func writeUntilRefused(t *testing.T, s *pebble.Store) (kv.Batch, error) {
	t.Helper()
	b := s.NewBatch()
	for n := range uint64(10_000) {
		b.Reset()
		b.Put(rows, []byte("after"), n, make([]byte, 64<<10))
		err := s.Write(t.Context(), b)
		if err == nil && n%16 == 15 {
			err = s.Sync(t.Context())
		}
		if err != nil {
			return b, err
		}
	}
	t.Fatal("10,000 writes and syncs to a broken disk without an error")
	return nil, nil
}

func testDiskFails(t *testing.T, o pebble.Options, file string, cause error) {
	ctx := context.Background()
	disk := vfs.NewCrashableMem()
	var broken *atomic.Bool
	o.Path = "store"
	o.FS, broken = breaking(disk, file, cause, true)
	s := open(t, o)
	put(t, s, "before", 1, []byte("kept"))
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	b, err := writeUntilRefused(t, s)
	if full := cause == syscall.ENOSPC; !errors.Is(err, cause) || errors.Is(err, kv.ErrFull) != full || !full && !errors.Is(err, kv.ErrFailed) || !strings.Contains(err.Error(), "store/") {
		t.Errorf("got %v, expected the cause, and the path of a file", err)
	}
	for what, err := range map[string]error{
		"Write": s.Write(ctx, b), "Sync": s.Sync(ctx), "Compact": s.Compact(ctx),
		"CompareAndSet": s.CompareAndSet(ctx, "p", nil, []byte("x")), "Stats": s.Stats().Refused,
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

// TestDiskFull fills the disk for a while: writes are refused, reads go on, and when
// there is space again the store writes as before.
func TestDiskFull(t *testing.T) { eachFile(t, testDiskFull) }

func testDiskFull(t *testing.T, o pebble.Options, file string) {
	ctx := t.Context()
	disk := vfs.NewCrashableMem()
	var full *atomic.Bool
	o.Path = "store"
	o.FS, full = breaking(disk, file, syscall.ENOSPC, false)
	s := open(t, o)
	put(t, s, "before", 1, []byte("kept"))
	for range 2 {
		full.Store(true)
		b, err := writeUntilRefused(t, s)
		if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) || !strings.Contains(err.Error(), "store/") {
			t.Errorf("got %v, expected that the disk is full, and the path of a file", err)
		}
		if err := s.Stats().Refused; !errors.Is(err, kv.ErrFull) {
			t.Errorf("Stats: %v", err)
		}
		if v, err := s.Get(ctx, rows, []byte("before"), 1, nil); err != nil || string(v) != "kept" {
			t.Errorf("read from a full disk: %q, %v", v, err)
		}
		full.Store(false)
		for err = s.Write(ctx, b); errors.Is(err, kv.ErrFull); err = s.Write(ctx, b) {
			time.Sleep(time.Millisecond) // until what waits is done
		}
		if err := errors.Join(err, s.Sync(ctx), s.Stats().Refused); err != nil {
			t.Fatalf("with space again: %v", err)
		}
	}
	put(t, s, "last", 1, []byte("kept"))
	closeStore(t, s)
	after := o
	after.FS = disk.CrashClone(vfs.CrashCloneCfg{})
	again := open(t, after)
	for _, partition := range []string{"before", "last"} {
		if v, err := again.Get(ctx, rows, []byte(partition), 1, nil); err != nil || string(v) != "kept" {
			t.Errorf("read after opening again: %q, %v", v, err)
		}
	}
	closeStore(t, again)
}

// TestTooManyOpenFiles has no file be opened for a while, as when clients have too many connections.
// Nothing of that is for good.
func TestTooManyOpenFiles(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) { testTooManyOpenFiles(t, o) })
	}
}

func testTooManyOpenFiles(t *testing.T, o pebble.Options) {
	ctx := t.Context()
	var crowded, unreadable atomic.Bool
	refused := make(chan struct{}, 1)
	o.Path = "store"
	o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpOpenDir:
			if crowded.Load() {
				return syscall.EMFILE
			}
		case errorfs.OpOpen:
			if unreadable.Load() {
				select {
				case refused <- struct{}{}:
				default:
				}
				return syscall.EMFILE
			}
		}
		return nil
	}))
	s := open(t, o)
	defer closeStore(t, s)
	for range 2 {
		crowded.Store(true)
		b, err := writeUntilRefused(t, s)
		if !errors.Is(err, syscall.EMFILE) || errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) || !strings.Contains(err.Error(), "store/") {
			t.Errorf("got %v, expected that too many files are open, and the path of one", err)
		}
		if err := s.Stats().Refused; !errors.Is(err, syscall.EMFILE) {
			t.Errorf("Stats: %v", err)
		}
		crowded.Store(false)
		for err = s.Write(ctx, b); errors.Is(err, syscall.EMFILE); err = s.Write(ctx, b) {
			time.Sleep(time.Millisecond) // until what waits is done
		}
		if err := errors.Join(err, s.Sync(ctx), s.Stats().Refused); err != nil {
			t.Fatalf("with fewer open files: %v", err)
		}
	}
	unreadable.Store(true)
	merged := make(chan error, 1)
	go func() { merged <- s.Compact(ctx) }() // waits for merges that are tried again
	select {
	case err := <-merged: // a single table need not be opened
		merged <- err
	case <-refused:
	}
	unreadable.Store(false)
	if err := <-merged; err != nil && !errors.Is(err, syscall.EMFILE) || errors.Is(err, kv.ErrFailed) {
		t.Errorf("a merge of tables that cannot be opened: %v", err)
	}
	put(t, s, "last", 1, []byte("kept"))
	if err := s.Compact(ctx); err != nil {
		t.Errorf("a merge with fewer open files: %v", err)
	}
	if v, err := s.Get(ctx, rows, []byte("last"), 1, nil); err != nil || string(v) != "kept" {
		t.Errorf("read %q, %v", v, err)
	}
}

// TestOpenOnFullDisk: the error says how much space must be free, and nothing says that reads go on.
// The store opens when there is space.
func TestOpenOnFullDisk(t *testing.T) {
	for _, file := range []string{"owner.pid", ".sst", "MANIFEST"} {
		for _, test := range []struct{ total, expected uint64 }{
			{100 << 30, 513}, // the reserve
			{200 << 20, 20},  // a memtable, and the log of 3 MiB
		} {
			t.Run(fmt.Sprintf("%s/%d MiB", file, test.total>>20), func(t *testing.T) {
				testOpenOnFullDisk(t, file, test.total, test.expected)
			})
		}
	}
}

func testOpenOnFullDisk(t *testing.T, file string, total, expected uint64) {
	disk := vfs.NewMem()
	var full *atomic.Bool
	var log bytes.Buffer
	o := pebble.Options{Path: "store", Options: kv.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	o.FS, full = breaking(disk, file, syscall.ENOSPC, false)
	s := open(t, o)
	put(t, s, "before", 1, make([]byte, 3<<20))
	closeStore(t, s)
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: total})
	full.Store(true)
	_, err := pebble.Open(o)
	if want := fmt.Sprintf("expected at least %d MiB of free space", expected); !errors.Is(err, kv.ErrFull) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected that the disk is full: %s", err, want)
	}
	if strings.Contains(log.String(), "reads go on") {
		t.Errorf("the log of a store that does not open: %s", &log)
	}
	full.Store(false)
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: total, AvailBytes: total})
	s = open(t, o) // in the same process
	put(t, s, "after", 1, []byte("kept"))
	closeStore(t, s)
	s = open(t, o)
	for partition, size := range map[string]int{"before": 3 << 20, "after": 4} {
		if v, err := s.Get(t.Context(), rows, []byte(partition), 1, nil); err != nil || len(v) != size {
			t.Errorf("read %q after opening with space: %d bytes, %v", partition, len(v), err)
		}
	}
	closeStore(t, s)
}

// TestReserve leaves so much free that what was accepted can be written out.
func TestReserve(t *testing.T) {
	disk := vfs.NewMem()
	free := func(bytes uint64) { disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 100 << 30, AvailBytes: bytes}) }
	free(1 << 30)
	s := open(t, pebble.Options{Path: "store", FS: disk, Reserve: 64 << 20})
	defer closeStore(t, s)
	put(t, s, "p", 1, []byte("kept"))
	b := s.NewBatch()
	b.Put(rows, []byte("p"), 2, nil)
	for _, test := range []struct {
		free    uint64
		refused bool
	}{{64 << 20, false}, {64<<20 - 1, true}, {64 << 20, true}, {0, true}, {72 << 20, false}, {64 << 20, false}} {
		free(test.free)
		for what, err := range map[string]error{"Write": s.Write(t.Context(), b), "Stats": s.Stats().Refused} {
			if errors.Is(err, kv.ErrFull) != test.refused || (err != nil) != test.refused {
				t.Errorf("%s with %d bytes free: %v", what, test.free, err)
			}
		}
		if got := s.Stats().FreeBytes; got == nil || *got != int64(test.free) {
			t.Errorf("with %d bytes free the store says %v", test.free, got)
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("Sync with %d bytes free: %v", test.free, err)
		}
	}
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 100 << 20, AvailBytes: 5 << 20})
	if err := s.Write(t.Context(), b); err != nil {
		t.Errorf("with a twentieth of a small disk free: %v", err)
	}
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
