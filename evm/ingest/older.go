package ingest

import (
	"context"
	"fmt"
	"math/big"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// RecordedSource yields consecutive blocks with their receipts, such as those of a history
// file. Their headers are linked; nothing else is known of them.
type RecordedSource interface {
	// First returns the number of the first block.
	First() uint64
	// Header returns the header of a block and its hash, or nil if the source does not have it.
	Header(number uint64) (*types.Header, common.Hash)
	// NextRecorded returns the next block with its receipts, and its encoded access list if it
	// has one.
	NextRecorded() (*types.Block, types.Receipts, []byte, error)
}

// AddOlder adds the blocks of a source that are before the first one of an archive. The last
// of them must be the parent of that one. They become visible together. It returns how many transactions they have.
func AddOlder(ctx context.Context, a *archive.Archive, e *execute.Executor, source RecordedSource) (transactions uint64, err error) {
	first := a.Extent().Blocks
	held, err := a.Header(ctx, first)
	if err != nil {
		return 0, err
	}
	header, hash := source.Header(first - 1)
	switch {
	case header == nil:
		return 0, fmt.Errorf("%w: blocks up to %d, the parent of the first block", ErrGap, first-1)
	case hash != held.ParentHash:
		return 0, fmt.Errorf("%w: block %s is in the source, %#x in the archive", ErrOtherChain, chain.Ref{Number: first - 1, Hash: hash}, held.ParentHash)
	}
	lowest := max(source.First(), 1)
	if err := checkGenesisLink(ctx, a, source, lowest); err != nil {
		return 0, err
	}
	total := new(big.Int).Sub(held.TotalDifficulty, held.Difficulty)
	for number := lowest; number < first; number++ {
		header, _ := source.Header(number)
		total.Sub(total, header.Difficulty)
	}
	if genesis, err := a.Header(ctx, 0); err != nil {
		return 0, err
	} else if lowest == 1 && total.Cmp(genesis.TotalDifficulty) != 0 {
		return 0, fmt.Errorf("the total difficulty of block %d is wrong: it makes that of the genesis %d (want %d)", first, total, genesis.TotalDifficulty)
	}
	older, err := a.AddOlder(ctx, lowest)
	if err != nil {
		return 0, err
	}
	for number := source.First(); number < first; number++ {
		block, receipts, accessList, err := source.NextRecorded()
		if err != nil {
			return 0, err
		}
		if number == 0 {
			continue
		}
		delta, err := e.Recorded(block, receipts, accessList)
		if err != nil {
			return 0, err
		}
		total.Add(total, block.Difficulty())
		if err := older.Put(ctx, delta, total); err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		transactions += uint64(len(block.Transactions()))
	}
	return transactions, older.Finish(ctx)
}

// checkGenesisLink checks that block 1 of a source follows the genesis of an archive.
func checkGenesisLink(ctx context.Context, a *archive.Archive, source RecordedSource, lowest uint64) error {
	if lowest != 1 {
		return nil
	}
	genesis, err := a.Header(ctx, 0)
	if err != nil {
		return err
	}
	if one, _ := source.Header(1); one.ParentHash != genesis.Hash {
		return fmt.Errorf("%w: block 1 has the parent %#x, the genesis is %#x", ErrOtherChain, one.ParentHash, genesis.Hash)
	}
	return nil
}
