package pebble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRowsInBlocks: a row that nearly fills a block has one of its own, so that a reader unpacks no
// other row with it. Shorter rows share blocks.
func TestRowsInBlocks(t *testing.T) {
	for _, c := range []struct{ rows, length, least, most int }{
		{rows: 40, length: blockBytes * 4 / 5, least: 40, most: 40},
		{rows: 40, length: blockBytes * 2 / 5, least: 20, most: 20},
		{rows: 4000, length: 400, least: 4000 * 400 / blockBytes, most: 4000 * 450 / blockBytes},
	} {
		t.Run(fmt.Sprintf("%d bytes", c.length), func(t *testing.T) {
			table := &kv.Table{ID: 0x22, Name: "rows", Kind: kv.List}
			store, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{Tables: []*kv.Table{table}}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			random, value, batch := rand.NewChaCha8([32]byte{}), make([]byte, c.length), store.NewBatch()
			for i := range uint64(c.rows) {
				_, _ = random.Read(value)
				batch.Put(table, []byte("partition"), i, value)
			}
			if err := store.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if err := store.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			levels, err := store.db.SSTables(lsm.WithProperties())
			if err != nil {
				t.Fatal(err)
			}
			blocks := 0
			for _, files := range levels {
				for _, file := range files {
					blocks += int(file.Properties.NumDataBlocks)
				}
			}
			if blocks < c.least || blocks > c.most {
				t.Errorf("%d rows of %d bytes are in %d blocks, expected %d to %d", c.rows, c.length, blocks, c.least, c.most)
			}
		})
	}
}
