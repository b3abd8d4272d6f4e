package archive

import (
	"context"

	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// Rewind removes every row of blocks after a settled one from a store that nobody else has
// open, or completes a rewind that was interrupted. It returns a [*BeforeFirst] for a block
// before the archive's first.
func Rewind(ctx context.Context, store kv.Store, to uint64, progress *audit.Progress) (rewind.Done, error) {
	if err := rows.CheckFormat(ctx, store, Format); err != nil {
		return rewind.Done{}, err
	}
	return rewind.Run(ctx, store, rewind.Plan{
		To:     to,
		Hash:   func(ctx context.Context) (common.Hash, error) { return storedHash(ctx, store, to) },
		Tables: Tables(),
	}, progress)
}

// storedHash returns the hash of a settled block.
func storedHash(ctx context.Context, store kv.Reader, number uint64) (hash common.Hash, err error) {
	first, err := readFirst(ctx, store)
	if err != nil {
		return hash, err
	}
	if number < first {
		return hash, &BeforeFirst{Number: number, First: first}
	}
	row, err := rows.OfBlock(ctx, store, headers, number, nil)
	if err != nil {
		return hash, err
	}
	header, err := decodeHeader(number, row)
	if err != nil {
		return hash, err
	}
	return common.Hash(header.Hash), nil
}
