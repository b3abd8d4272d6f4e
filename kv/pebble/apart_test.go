package pebble

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestApart loads rows of the first, a middle and the last table, one of which is kept
// apart, and looks for its rows in files with others.
func TestApart(t *testing.T) {
	for _, apart := range []byte{1, 0x23, math.MaxUint8} {
		t.Run(fmt.Sprintf("table %#x", apart), func(t *testing.T) {
			store, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{BulkLoad: true, Tables: []*kv.Table{{ID: 0x30}, {ID: apart, Apart: true}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			for run := range 3 {
				batch := store.NewBatch()
				for _, id := range []byte{1, 2, 0x22, 0x23, 0x24, math.MaxUint8 - 1, math.MaxUint8} {
					table := &kv.Table{ID: id, Name: "t", Kind: kv.List}
					for i := range 100 {
						batch.Put(table, binary.BigEndian.AppendUint64(nil, uint64(i)), uint64(run), make([]byte, 100))
					}
				}
				if err := store.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				if err := store.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				checkApart(t, store, apart)
			}
			if err := store.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkApart(t, store, apart)
		})
	}
}

// checkApart fails when a file has rows of the table and of another.
func checkApart(t *testing.T, store *Store, apart byte) {
	t.Helper()
	levels, err := store.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	has := false
	for level, files := range levels {
		for _, file := range files {
			first, last := file.Smallest.UserKey[0], file.Largest.UserKey[0]
			has = has || first == apart
			if first <= apart && last >= apart && first != last {
				t.Errorf("level %d: file %v has rows of tables %#x to %#x", level, file.FileNum, first, last)
			}
		}
	}
	if !has {
		t.Error("no file has rows of the table")
	}
}
