// Package rows is what the settled history of every family of chain has in
// common: how rows are keyed by block and by hash, how their values are taken
// apart, and how the store says what it holds. It knows no family; docs/format.md
// draws what is here once for all.
package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrCorrupt says that a stored row is not what was written.
	ErrCorrupt = errors.New("archive: corrupt")
	// ErrNotFound says that there is no such block or transaction.
	ErrNotFound = errors.New("archive: not found")
	// ErrNotNext says that a block does not follow the settled one.
	ErrNotNext = errors.New("archive: block does not follow the last settled one")
	// ErrFormat says that the archive was written by another version, or is of another family.
	ErrFormat = errors.New("archive: unknown format")
)

const (
	// ChunkBits is how many blocks share a partition of the tables that hold
	// a row a block: enough to lie together, few enough for a distributed
	// engine's partitions.
	ChunkBits = 10
	// HashPrefixBytes of a hash are enough to find it again: what is found is
	// compared with the whole hash.
	HashPrefixBytes = 6
	// IndexBits of a transaction's sort key are its position in the block.
	IndexBits = 20
)

// MostTransactions is how many a block may have: as many as a sort key can tell apart.
const MostTransactions = 1<<IndexBits - 1

// MostNumber is the highest number that a block may have: a sort key has no room for
// more above IndexBits.
const MostNumber = 1<<(64-IndexBits) - 1

// Chunk is the partition of a block's row in a table that has one row a block.
func Chunk(number uint64) [8]byte {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], number>>ChunkBits)
	return key
}

// OfBlock appends the row of a block to buffer, or returns ErrNotFound. The table
// has one row a block.
func OfBlock(ctx context.Context, store kv.Reader, table *kv.Table, number uint64, buffer []byte) ([]byte, error) {
	partition := Chunk(number)
	row, err := store.Get(ctx, table, partition[:], number, buffer)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: block %d", ErrNotFound, number)
	}
	return row, err
}

// Hold returns a cursor at the row of a block, or ErrNotFound: the row is not copied,
// and stays until the cursor is closed. The table has one row a block.
func Hold(ctx context.Context, store kv.Reader, table *kv.Table, number uint64) (kv.Cursor, error) {
	partition := Chunk(number)
	cursor := store.Scan(ctx, table, partition[:], number, number)
	if cursor.Next() {
		return cursor, nil
	}
	err := cursor.Close()
	if err == nil {
		err = fmt.Errorf("%w: block %d in %s", ErrNotFound, number, table.Name)
	}
	return nil, err
}

// Encoded is a block whose rows have been made before.
type Encoded interface {
	Ref() chain.Ref
	Parent() common.Hash
	// PutRows puts every row of the block.
	PutRows(to kv.Putter)
}
