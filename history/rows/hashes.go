package rows

import (
	"context"

	"ashlar/kv"
)

// A Place is the position of a transaction in the chain.
type Place struct {
	Number uint64
	Index  int
}

// PutBlockHash puts the row that finds a block by its hash, which has 32 bytes.
func PutBlockHash(to kv.Putter, table *kv.Table, hash []byte, number uint64) {
	to.Put(table, hash[:HashPrefixBytes], number, nil)
}

// PutTransactionHash puts the row that finds a transaction by its hash.
// The number is at most MaxNumber, the index at most MaxTransactions.
func PutTransactionHash(to kv.Putter, table *kv.Table, hash []byte, place Place) {
	to.Put(table, hash[:HashPrefixBytes], place.Number<<IndexBits|uint64(place.Index), nil)
}

// FindBlock calls found with the number of each block from first on whose hash may be hash, until
// found returns true for the right one. There is rarely more than one candidate, and nearly
// always none for an unknown hash.
func FindBlock(ctx context.Context, store kv.Reader, table *kv.Table, hash []byte, first uint64, found func(number uint64) (bool, error)) error {
	cursor := store.Scan(ctx, table, hash[:HashPrefixBytes], first, ^uint64(0))
	defer cursor.Close()
	for ok := cursor.Next(); ok; ok = cursor.Next() {
		if done, err := found(cursor.Sort()); done || err != nil {
			return err
		}
	}
	return cursor.Close()
}

// FindTransaction is like [FindBlock] for transactions.
func FindTransaction(ctx context.Context, store kv.Reader, table *kv.Table, hash []byte, first uint64, found func(Place) (bool, error)) error {
	return FindBlock(ctx, store, table, hash, first<<IndexBits, func(sort uint64) (bool, error) {
		return found(Place{Number: sort >> IndexBits, Index: int(sort & (1<<IndexBits - 1))})
	})
}
