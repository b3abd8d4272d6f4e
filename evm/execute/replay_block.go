package execute

import (
	"context"

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

// StoredBlock is what the execution of a block has left.
type StoredBlock interface {
	// AccessList returns the RLP of the block's access list, which stays as it is. It is only
	// called for blocks that have one.
	AccessList(ctx context.Context) ([]byte, error)
	// Changes returns what the transactions of a block without an access list have changed, or
	// nil if that is not stored.
	Changes(ctx context.Context) (StoredChanges, error)
	// LogsBefore returns the number of logs of the transactions before the one with that
	// index, which may be the number of all transactions.
	LogsBefore(ctx context.Context, index int) (uint64, error)
}

// StoredChanges are what the transactions of a block have changed. A step is as in [evm.Changes],
// at most that of the last transaction.
type StoredChanges interface {
	// Account returns an account after a step, by keccak256 of its address. changed is false if
	// no step until then has changed it: then it is as before the block.
	Account(ctx context.Context, address common.Hash, step int) (account *types.StateAccount, changed bool, err error)
	// Slot is Account for a slot, by keccak256 of address and slot.
	Slot(ctx context.Context, address, slot common.Hash, step int) (value common.Hash, changed bool, err error)
	// Code returns a code that accounts had only within the block, by its hash; ok is false if
	// it is none of these.
	Code(ctx context.Context, hash common.Hash) (code []byte, ok bool, err error)
}
