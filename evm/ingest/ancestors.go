package ingest

import (
	"context"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// recentBlocks is how many blocks are kept in memory: BLOCKHASH reaches 256 back.
const recentBlocks = 300

// ancestors are the blocks up to the last executed one: recent ones in memory, the
// others in the archive. It implements [execute.Ancestors]. Many goroutines may read it,
// but not while a block is added.
type ancestors struct {
	settled archive.Ancestors
	recent  [recentBlocks]*types.Block // block n at n modulo recentBlocks
}

func newAncestors(a *archive.Archive) *ancestors {
	return &ancestors{settled: archive.Ancestors{History: &a.History}}
}

func (a *ancestors) add(block *types.Block) {
	a.recent[block.NumberU64()%recentBlocks] = block
}

func (a *ancestors) Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	if block := a.recent[number%recentBlocks]; block != nil && block.NumberU64() == number && block.Hash() == hash {
		return block.Header(), nil
	}
	return a.settled.Header(ctx, hash, number)
}

func (a *ancestors) First() uint64 { return a.settled.First() }

func (a *ancestors) Block(ctx context.Context, hash common.Hash, number uint64) (*types.Block, error) {
	if block := a.recent[number%recentBlocks]; block != nil && block.NumberU64() == number && block.Hash() == hash {
		return block, nil
	}
	return a.settled.Block(ctx, hash, number)
}
