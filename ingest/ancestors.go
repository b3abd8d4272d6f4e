package ingest

import (
	"context"
	"errors"

	"ashlar/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// recentBlocks are kept at hand: the EVM asks for 256 hashes back.
const recentBlocks = 300

// ancestors are the blocks up to the last executed one: the recent ones at
// hand, the others from the history below it. It implements [execute.Ancestors] and
// belongs to the goroutine that executes.
type ancestors struct {
	history *archive.History
	recent  [recentBlocks]*types.Block // block n at n modulo recentBlocks
}

func (a *ancestors) add(block *types.Block) {
	a.recent[block.NumberU64()%recentBlocks] = block
}

func (a *ancestors) Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	if block := a.recent[number%recentBlocks]; block != nil && block.NumberU64() == number && block.Hash() == hash {
		return block.Header(), nil
	}
	header, err := a.history.Header(ctx, number)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil
	}
	if err != nil || header.Hash != hash {
		return nil, err
	}
	return header.Header, nil
}

func (a *ancestors) Block(ctx context.Context, hash common.Hash, number uint64) (*types.Block, error) {
	if block := a.recent[number%recentBlocks]; block != nil && block.NumberU64() == number && block.Hash() == hash {
		return block, nil
	}
	header, err := a.Header(ctx, hash, number)
	if header == nil || err != nil {
		return nil, err
	}
	body, err := a.history.Body(ctx, number, nil)
	if err != nil {
		return nil, err
	}
	return body.Block(header)
}
