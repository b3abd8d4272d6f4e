// Package rows holds what the settled history of every chain family has in common: keys
// by block and by hash, the decoding of values, and the pointers that describe a store's
// contents. It knows no family. docs/format.md draws the formats.
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
	// ErrCorrupt means that a stored row is not what was written.
	ErrCorrupt = errors.New("archive: corrupt")
	// ErrNotFound means that there is no such block or transaction.
	ErrNotFound = errors.New("archive: not found")
	// ErrNotNext means that a block does not follow the settled one.
	ErrNotNext = errors.New("archive: block does not follow the last settled one")
	// ErrFormat means that the archive was written by another version, or is of another family.
	ErrFormat = errors.New("archive: unknown format")
	// ErrRewinding means that the archive is being taken back to an earlier block, and must
	// not be used before that is complete.
	ErrRewinding = errors.New("archive: a rewind is not complete")
	// ErrJoining means that rows of another archive are being added, and the archive must not be
	// used before that is complete.
	ErrJoining = errors.New("archive: a join is not complete")
	// ErrStarting means that the state with which the archive begins is not complete, so there
	// is nothing to use yet.
	ErrStarting = errors.New("archive: its first state is not complete")
)

// Incomplete reports whether an error means that an archive must not be used before a command
// has completed what it does to it.
func Incomplete(err error) bool {
	return errors.Is(err, ErrRewinding) || errors.Is(err, ErrJoining) || errors.Is(err, ErrStarting)
}

const (
	// ChunkBits determines how many blocks, 1<<ChunkBits, share a partition in tables with
	// one row per block: enough to be stored together, few enough for the partitions of a
	// distributed engine.
	ChunkBits = 10
	// HashPrefixBytes is how much of a hash is stored to find it again. The full hash of a
	// match is compared.
	HashPrefixBytes = 6
	// IndexBits are the low bits of a transaction's sort key: its position in the block.
	IndexBits = 20
)

// MaxTransactions is the greatest number of transactions in a block, limited by IndexBits.
const MaxTransactions = 1<<IndexBits - 1

// MaxNumber is the greatest block number: what fits into a sort key above IndexBits.
const MaxNumber = 1<<(64-IndexBits) - 1

// Chunk returns the partition of a block in tables with one row per block.
func Chunk(number uint64) [8]byte {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], number>>ChunkBits)
	return key
}

// OfBlock appends a block's row in a table with one row per block to buffer. It returns
// ErrNotFound if there is none.
func OfBlock(ctx context.Context, store kv.Reader, table *kv.Table, number uint64, buffer []byte) ([]byte, error) {
	partition := Chunk(number)
	row, err := store.Get(ctx, table, partition[:], number, buffer)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: block %d", ErrNotFound, number)
	}
	return row, err
}

// Hold returns a cursor at a block's row in a table with one row per block, or
// ErrNotFound. Unlike OfBlock it does not copy: the row is valid until the cursor is closed.
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

// Encoded is a block whose rows were encoded earlier.
type Encoded interface {
	Ref() chain.Ref
	Parent() common.Hash
	// PutRows puts all rows of the block.
	PutRows(to kv.Putter)
}
