package archive

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Ancestors finds blocks of a history by hash and number, for executing later blocks.
type Ancestors struct{ History *History }

// Header returns the header with that hash and number, or nil.
func (a Ancestors) Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	header, err := a.History.Header(ctx, number)
	if errors.Is(err, ErrNotFound) || err == nil && header.Hash != hash {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return header.Header, nil
}

// First returns the number of the first block that is stored, besides the genesis.
func (a Ancestors) First() uint64 { return a.History.Extent().Blocks }

// Block returns the block with that hash and number, or nil.
func (a Ancestors) Block(ctx context.Context, hash common.Hash, number uint64) (*types.Block, error) {
	header, err := a.Header(ctx, hash, number)
	if header == nil || err != nil {
		return nil, err
	}
	body, err := a.History.Body(ctx, number, nil)
	if err != nil {
		return nil, err
	}
	return body.Block(header)
}
