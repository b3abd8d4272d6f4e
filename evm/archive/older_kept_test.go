package archive

import (
	"math/big"
	"testing"

	"ashlar/kv/rowcache"
)

// TestOlderAreFound: a reader that keeps rows, and that there are none, finds blocks and transactions
// that are added before the first block after it has looked for them.
func TestOlderAreFound(t *testing.T) {
	g := newGrower(t, 77)
	for range 12 {
		g.block()
	}
	const first = 9
	writer := startedAt(t, g, first)
	cached, err := rowcache.New(t.Context(), writer.store, rowcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Open(t.Context(), cached)
	if err != nil {
		t.Fatal(err)
	}
	cached.Follow(first, nil)
	older := g.blocks[first-1]
	find := func() (block, transaction bool) {
		t.Helper()
		_, err := reader.FindBlock(t.Context(), older.Block.Hash())
		block = err == nil
		for _, tx := range older.Block.Transactions() {
			err := reader.FindTransaction(t.Context(), tx.Hash(), func(Place) (bool, error) {
				transaction = true
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return block, transaction
	}
	if block, transaction := find(); block || transaction {
		t.Fatal("a block before the first one is found")
	}
	if number, err := reader.FindBlock(t.Context(), g.blocks[0].Block.Hash()); err != nil || number != 0 {
		t.Errorf("the genesis: block %d, %v", number, err)
	}
	added, err := writer.AddOlder(t.Context(), first-1)
	if err == nil {
		err = added.Put(t.Context(), older, big.NewInt(7*first))
	}
	if err == nil {
		err = added.Finish(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if block, transaction := find(); !block || transaction != (len(older.Block.Transactions()) > 0) {
		t.Errorf("after it was added: block found %v, transactions found %v", block, transaction)
	}
}
