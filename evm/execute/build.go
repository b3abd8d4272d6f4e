package execute

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
)

// Attributes are what the builder of a block chooses.
type Attributes struct {
	Timestamp        uint64 // Unix seconds, above the parent's
	FeeRecipient     common.Address
	PrevRandao       common.Hash
	ParentBeaconRoot common.Hash
	GasLimit         uint64
	Withdrawals      types.Withdrawals
	ExtraData        []byte
}

// ErrNotBuilt says that blocks of the time of the one that was asked for are not built.
var ErrNotBuilt = errors.New("blocks before Cancun are not built")

// LeftOut is a transaction that a built block has no place for, and why.
type LeftOut struct {
	Transaction *types.Transaction
	Err         error
}

// BaseFee is the base fee of the block after parent.
func (e *Executor) BaseFee(parent *types.Header) *big.Int {
	return eip1559.CalcBaseFee(e.config, parent)
}

// Build makes the block that comes after a parent, of the time after the merge,
// from transactions in their order. Those that cannot be included are left out.
// The state root is computed and checked already: [Executor.Root] only makes the delta.
func (e *Executor) Build(ctx context.Context, parent Parent, attributes Attributes, transactions types.Transactions) (*Executed, []LeftOut, error) {
	header, err := e.draft(parent.Header, attributes)
	if err != nil {
		return nil, nil, err
	}
	db := newDatabase(ctx, parent, false)
	statedb, err := state.New(parent.Header.Root, db)
	if err != nil {
		return nil, nil, fmt.Errorf("open state of block %d: %w", parent.Header.Number, err)
	}
	r, err := e.beginRun(ctx, parent, header, statedb, &db.readFailure)
	if err != nil {
		return nil, nil, fmt.Errorf("build block %d: %w", header.Number, err)
	}
	defer r.evm.Release()
	body := &types.Body{Withdrawals: attributes.Withdrawals}
	if body.Withdrawals == nil {
		body.Withdrawals = types.Withdrawals{} // none, in a block of a time that has them
	}
	leftOut, err := r.include(body, transactions)
	if err != nil {
		return nil, nil, err
	}
	ran, err := r.finish(body)
	if err = errors.Join(err, db.failure()); err != nil {
		return nil, nil, fmt.Errorf("build block %d: %w", header.Number, err)
	}
	rules := e.rules(header)
	header.GasUsed = ran.gasUsed
	header.Root = statedb.IntermediateRoot(rules)
	if ran.requests != nil {
		hash := types.CalcRequestsHash(ran.requests)
		header.RequestsHash = &hash
	}
	block := types.NewBlock(header, body, ran.receipts, trie.NewStackTrie(nil))
	_, err = statedb.Commit(rules, block.NumberU64())
	if err = errors.Join(err, db.failure()); err != nil {
		return nil, nil, fmt.Errorf("commit state of block %d: %w", header.Number, err)
	}
	hash := block.Hash()
	for _, receipt := range ran.receipts {
		receipt.BlockHash = hash
		for _, log := range receipt.Logs {
			log.BlockHash = hash
		}
	}
	return &Executed{Block: block, Senders: ran.senders, Receipts: ran.receipts, update: db.update, rooted: true}, leftOut, nil
}

// draft makes the header of a block that is yet to be filled.
func (e *Executor) draft(parent *types.Header, attributes Attributes) (*types.Header, error) {
	header := &types.Header{
		ParentHash:       parent.Hash(),
		UncleHash:        types.EmptyUncleHash,
		Coinbase:         attributes.FeeRecipient,
		Difficulty:       new(big.Int),
		Number:           new(big.Int).Add(parent.Number, common.Big1),
		GasLimit:         attributes.GasLimit,
		Time:             attributes.Timestamp,
		Extra:            attributes.ExtraData,
		MixDigest:        attributes.PrevRandao,
		BaseFee:          e.BaseFee(parent),
		ParentBeaconRoot: &attributes.ParentBeaconRoot,
	}
	if err := e.knowsRules(header); err != nil {
		return nil, err
	}
	if !e.config.IsCancun(header.Number, header.Time) {
		return nil, fmt.Errorf("build block %d: %w", header.Number, ErrNotBuilt)
	}
	excess := eip4844.CalcExcessBlobGas(e.config, parent, header.Time)
	header.ExcessBlobGas, header.BlobGasUsed = &excess, new(uint64)
	return header, nil
}

// include runs what can be included and puts it into body.
func (r *blockRun) include(body *types.Body, transactions types.Transactions) ([]LeftOut, error) {
	var leftOut []LeftOut
	maxBlobGas := uint64(eip4844.MaxBlobsPerBlock(r.executor.config, r.header.Time)) * params.BlobTxBlobGasPerBlob
	for _, tx := range transactions {
		blobGas := *r.header.BlobGasUsed + tx.BlobGas()
		if blobGas > maxBlobGas {
			leftOut = append(leftOut, LeftOut{tx, fmt.Errorf("the block has no room for its %d blobs", len(tx.BlobHashes()))})
			continue
		}
		before, gas := r.state.Snapshot(), r.gas.Snapshot()
		if err := r.apply(tx); err != nil {
			if r.ctx.Err() != nil {
				return nil, r.ctx.Err()
			}
			r.state.RevertToSnapshot(before)
			r.gas.Set(gas)
			leftOut = append(leftOut, LeftOut{tx, err})
			continue
		}
		*r.header.BlobGasUsed = blobGas
		body.Transactions = append(body.Transactions, tx)
	}
	return leftOut, nil
}
