package pebble

import (
	"context"
	"encoding/binary"
	"testing"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCompressionWhileLoading: on the lowest level, a bulk load compresses the table that is kept
// apart only lightly, until Compact. Other stores, and other tables, are compressed thoroughly.
func TestCompressionWhileLoading(t *testing.T) {
	const thorough = "ZSTD"
	const apart, other = 0x23, 0x22
	for name, load := range map[string]bool{"bulk load": true, "others": false} {
		t.Run(name, func(t *testing.T) {
			table := kv.Table{ID: apart, Name: "apart", Kind: kv.List}
			store, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{BulkLoad: load, Apart: &table}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			merge := func() error {
				return store.db.Compact(t.Context(), []byte{pointerTable, prefixEnd}, immediateSuccessor(nil, lastPrefix(0xff)), true)
			}
			// The first run lies alone.
			for run, step := range []struct {
				compact  func() error
				thorough bool
			}{{merge, false}, {merge, !load}, {func() error { return store.Compact(context.Background()) }, true}, {merge, !load}} {
				batch := store.NewBatch()
				for _, id := range []byte{other, apart} {
					for i := range 100 {
						batch.Put(&kv.Table{ID: id, Name: "t", Kind: kv.List}, binary.BigEndian.AppendUint64(nil, uint64(i)), uint64(run), make([]byte, 100))
					}
				}
				if err := store.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				if err := store.db.Flush(); err != nil {
					t.Fatal(err)
				}
				if err := step.compact(); err != nil {
					t.Fatal(err)
				}
				if run == 0 {
					continue // Pebble moves tables that overlap with none, as they are
				}
				levels, err := store.db.SSTables(lsm.WithProperties())
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range levels[bottomLevel] {
					id, got := file.Smallest.UserKey[0], file.Properties.CompressionName
					if want := id != apart || step.thorough; (got == thorough) != want {
						t.Errorf("run %d: the file of table %#x is compressed with %s, expected thoroughly: %v", run, id, got, want)
					}
				}
				if len(levels[bottomLevel]) < 2 {
					t.Errorf("run %d: %d files on the lowest level", run, len(levels[bottomLevel]))
				}
			}
		})
	}
}
