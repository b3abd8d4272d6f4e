package execute

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// chainReader gives go-ethereum the ancestors of one block. Its interfaces have no
// errors, so they are reported to failed. It belongs to one goroutine.
type chainReader struct {
	ctx    context.Context
	config *params.ChainConfig
	engine consensus.Engine
	parent Parent
	failed *readFailure
}

func (c *chainReader) Config() *params.ChainConfig  { return c.config }
func (c *chainReader) Engine() consensus.Engine     { return c.engine }
func (c *chainReader) CurrentHeader() *types.Header { return c.parent.Header }

func (c *chainReader) GetHeader(hash common.Hash, number uint64) *types.Header {
	if number == c.parent.Header.Number.Uint64() && hash == c.parent.Header.Hash() {
		return c.parent.Header
	}
	if number > c.parent.Header.Number.Uint64() {
		return nil
	}
	header, err := c.parent.Ancestors.Header(c.ctx, hash, number)
	if err != nil {
		c.failed.fail(err)
	}
	return header
}

func (c *chainReader) GetBlock(hash common.Hash, number uint64) *types.Block {
	block, err := c.parent.Ancestors.Block(c.ctx, hash, number)
	if err != nil {
		c.failed.fail(err)
	}
	return block
}

// GetHeaderByNumber walks back from the parent: its ancestors are the canonical blocks.
func (c *chainReader) GetHeaderByNumber(number uint64) *types.Header {
	header := c.parent.Header
	for header != nil && header.Number.Uint64() > number {
		header = c.GetHeader(header.ParentHash, header.Number.Uint64()-1)
	}
	return header
}

// GetHeaderByHash is never called by the engines in use.
func (c *chainReader) GetHeaderByHash(hash common.Hash) *types.Header {
	header := c.parent.Header
	for header != nil && header.Hash() != hash {
		if header.Number.Sign() == 0 {
			return nil
		}
		header = c.GetHeader(header.ParentHash, header.Number.Uint64()-1)
	}
	return header
}
