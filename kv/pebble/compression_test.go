package pebble

import (
	"encoding/binary"
	"fmt"
	"testing"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCompression: on the lowest level, tables that are kept apart are compressed lightly, and
// others thoroughly.
func TestCompression(t *testing.T) {
	const thorough = "ZSTD"
	tables := []*kv.Table{
		{ID: 0x22, Name: "before", Kind: kv.List}, {ID: 0x23, Name: "first", Kind: kv.List, Apart: true},
		{ID: 0x24, Name: "between", Kind: kv.List}, {ID: 0x25, Name: "second", Kind: kv.List, Apart: true},
	}
	for _, load := range []bool{true, false} {
		t.Run(fmt.Sprintf("bulk load %v", load), func(t *testing.T) {
			store, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{BulkLoad: load, Tables: tables}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			for run := range 2 { // the first lies alone: Pebble moves files that overlap with none, as they are
				batch := store.NewBatch()
				for _, table := range tables {
					for i := range 100 {
						batch.Put(table, binary.BigEndian.AppendUint64(nil, uint64(i)), uint64(run), make([]byte, 100))
					}
				}
				if err := store.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				if err := store.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			levels, err := store.db.SSTables(lsm.WithProperties())
			if err != nil {
				t.Fatal(err)
			}
			if files := levels[bottomLevel]; len(files) != len(tables) {
				t.Fatalf("%d files on the lowest level, expected one for each of %d tables", len(files), len(tables))
			}
			for i, file := range levels[bottomLevel] {
				if got := file.Properties.CompressionName; (got == thorough) == tables[i].Apart {
					t.Errorf("the file of table %s is compressed with %s, expected thoroughly: %v", tables[i].Name, got, !tables[i].Apart)
				}
			}
		})
	}
}
