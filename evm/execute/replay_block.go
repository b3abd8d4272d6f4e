package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Block is a block that is replayed. Its transactions may be decoded when they are needed: a trace of one transaction takes
// less time than to decode those of its block. It is safe for concurrent use.
type Block interface {
	// Header returns the header, which the caller must not change.
	Header() *types.Header
	Hash() common.Hash
	// Len is the number of transactions.
	Len() int
	// Transaction returns the transaction at an index below Len.
	Transaction(index int) (*types.Transaction, error)
	// Uncles returns the headers of the uncles, which the caller must not change.
	Uncles() ([]*types.Header, error)
	// Whole returns the block with all that it has.
	Whole() (*types.Block, error)
}

// Decoded returns a block that has been decoded, to be replayed.
func Decoded(block *types.Block) Block { return &decodedBlock{block, block.Header()} }

type decodedBlock struct {
	block  *types.Block
	header *types.Header
}

func (b *decodedBlock) Header() *types.Header            { return b.header }
func (b *decodedBlock) Hash() common.Hash                { return b.block.Hash() }
func (b *decodedBlock) Len() int                         { return len(b.block.Transactions()) }
func (b *decodedBlock) Uncles() ([]*types.Header, error) { return b.block.Uncles(), nil }
func (b *decodedBlock) Whole() (*types.Block, error)     { return b.block, nil }
func (b *decodedBlock) Transaction(i int) (*types.Transaction, error) {
	return b.block.Transactions()[i], nil
}
