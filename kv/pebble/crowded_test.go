package pebble_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestReadsWithTooManyOpenFiles has reads find too many files open. None may take that for a missing row: all
// say that the store is unavailable, and succeed when there are fewer.
func TestReadsWithTooManyOpenFiles(t *testing.T) {
	ctx := t.Context()
	var crowded atomic.Bool
	var log bytes.Buffer
	o := pebble.Options{Path: "store"}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if crowded.Load() && op.Kind == errorfs.OpOpen {
			return syscall.EMFILE
		}
		return nil
	}))
	s := open(t, o)
	put(t, s, "a", 1, []byte("kept"))
	b := s.NewBatch()
	b.SetPointer("head", []byte("kept"))
	if err := errors.Join(s.Write(ctx, b), s.Compact(ctx)); err != nil { // moves both to a table
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, o)
	defer closeStore(t, s)

	reads := map[string]func(partition string) error{
		"Get":     func(p string) error { _, err := s.Get(ctx, rows, []byte(p), 1, nil); return err },
		"Newest":  func(p string) error { _, _, err := s.Newest(ctx, rows, []byte(p), 9, nil); return err },
		"Pointer": func(string) error { _, err := s.Pointer(ctx, "head"); return err },
		"GetMany": func(p string) error {
			return s.GetMany(ctx, rows, []kv.Key{{Partition: []byte(p), Sort: 1}}, func(int, []byte) error { return nil })
		},
		"Scan": func(p string) error {
			c := s.Scan(ctx, rows, []byte(p), 0, math.MaxUint64)
			for c.Next() {
				continue
			}
			return c.Close()
		},
		"Scan that is closed late": func(p string) error {
			ctx, cancel := context.WithCancel(ctx)
			c := s.Scan(ctx, rows, []byte(p), 0, math.MaxUint64)
			for c.Next() {
				continue
			}
			cancel() // the rows were not all read before
			return c.Close()
		},
	}
	crowded.Store(true)
	for range 2 {
		for name, read := range reads {
			if err := read("a"); !errors.Is(err, kv.ErrUnavailable) || !errors.Is(err, syscall.EMFILE) || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%s with too many open files: %v, expected %v and the cause", name, err, kv.ErrUnavailable)
			}
		}
	}
	if n := strings.Count(log.String(), "too many files are open; reads fail"); n != 1 {
		t.Errorf("%d lines say that reads fail, expected one for all of them, in\n%s", n, log.String())
	}
	crowded.Store(false)
	for name, read := range reads {
		if err := read("a"); err != nil {
			t.Errorf("%s with fewer open files: %v", name, err)
		}
	}
}
