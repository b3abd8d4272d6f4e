package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCompactTable: a compaction of a table frees the space of its removed rows, slice by slice, and leaves other
// tables alone.
func TestCompactTable(t *testing.T) {
	before := sliceBytes
	t.Cleanup(func() { sliceBytes = before })
	one := &kv.Table{ID: 0x31, Name: "one", Kind: kv.List, Apart: true} // in files of its own
	other := &kv.Table{ID: 0x32, Name: "other", Kind: kv.List}
	for _, sliceBytes = range []uint64{before, 1 << 10} {
		s, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{Tables: []*kv.Table{one, other}, BufferBytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		const rows = 3000
		random := rand.NewChaCha8([32]byte{1})
		change := func(do func(b kv.Batch, table *kv.Table, partition []byte)) {
			t.Helper()
			b := s.NewBatch()
			for i := range rows {
				for _, table := range []*kv.Table{one, other} {
					do(b, table, fmt.Appendf(nil, "%08d", i))
				}
			}
			if err := errors.Join(s.Write(t.Context(), b), s.Sync(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		change(func(b kv.Batch, table *kv.Table, partition []byte) {
			value := make([]byte, 1000)
			random.Read(value)
			b.Put(table, partition, 1, value)
		})
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		change(func(b kv.Batch, table *kv.Table, partition []byte) {
			if partition[7] != '0' {
				b.Delete(table, partition, 1)
			}
		})
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Compact(canceled, one); !errors.Is(err, context.Canceled) {
			t.Errorf("a compaction without time: %v", err)
		}
		if err := s.Compact(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		for table, most := range map[*kv.Table]uint64{one: rows * 150, other: rows * 1200} {
			size, err := s.db.EstimateDiskUsage([]byte{table.ID, prefixEnd}, lastPrefix(table.ID))
			if err != nil || size > most || size < most/2 {
				t.Errorf("slices of %d bytes: table %s takes %d bytes, %v, want %d to %d", sliceBytes, table.Name, size, err, most/2, most)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
