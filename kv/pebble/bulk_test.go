package pebble_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestBulkBatchIsWrittenAgain: the memory of batches is used again, but not that of one which the store keeps in place of a
// memtable, because it is larger than half of one, until it is flushed.
func TestBulkBatchIsWrittenAgain(t *testing.T) {
	flush := make(chan struct{})
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			<-flush
		}
		return nil
	}))
	o := pebble.Options{Path: "store", FS: disk, Options: kv.Options{BulkLoad: true, BufferBytes: 1 << 20}}
	s, err := pebble.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	key := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)*0x9e3779b1) } // in no order
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n), byte(n >> 8)}, 100) }
	b := s.NewBatch()
	written := 0
	for _, size := range []int{200, 8_000, 200, 8_000, 500} { // 8,000 take 1.6 MB
		b.Reset()
		for range size {
			b.Put(rows, key(written), 0, value(written))
			written++
		}
		if err := s.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		for n := range written {
			if got, err := s.Get(t.Context(), rows, key(n), 0, nil); err != nil || !bytes.Equal(got, value(n)) {
				t.Fatalf("%s: row %d of %d is %x, %v", when, n, written, got[:min(8, len(got))], err)
			}
		}
	}
	check("before the flush")
	close(flush)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after it")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
