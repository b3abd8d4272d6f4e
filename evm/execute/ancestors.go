package execute

import (
	"context"

	"ashlar/evm"

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

	reached *types.Header // the ancestor that was read last; nil: none
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
	if header != nil {
		c.reached = header
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

// GetHeaderByNumber walks back from the parent: its ancestors are the canonical blocks. Clique, which also
// walks back, calls it at each checkpoint, so the walk goes on where the last one has ended.
//
// Clique trusts a checkpoint without a parent. So the first one that is stored has none: the blocks between
// it and the first block would not be enough to tell the signers.
func (c *chainReader) GetHeaderByNumber(number uint64) *types.Header {
	if c.isFirstCheckpoint(number + 1) {
		return nil
	}
	header := c.parent.Header
	if c.reached != nil && c.reached.Number.Uint64() >= number {
		header = c.reached
	}
	for header != nil && header.Number.Uint64() > number {
		header = c.GetHeader(header.ParentHash, header.Number.Uint64()-1)
	}
	return header
}

// isFirstCheckpoint reports whether a block is the first checkpoint of a clique chain whose first blocks are
// not stored.
func (c *chainReader) isFirstCheckpoint(number uint64) bool {
	epoch := evm.CliqueEpoch(c.config)
	if epoch == 0 || number%epoch != 0 {
		return false
	}
	first := c.parent.Ancestors.First()
	return first > 1 && number >= first && number-first < epoch
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
