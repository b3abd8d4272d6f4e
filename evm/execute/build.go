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
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// Attributes are the fields of a block that its builder chooses.
type Attributes struct {
	Timestamp        uint64 // Unix seconds, above the parent's
	FeeRecipient     common.Address
	PrevRandao       common.Hash
	ParentBeaconRoot common.Hash
	SlotNumber       uint64 // used from Amsterdam on
	GasLimit         uint64
	Withdrawals      types.Withdrawals
	ExtraData        []byte
}

// ErrNotBuilt means that the requested block would be before Cancun.
var ErrNotBuilt = errors.New("blocks before Cancun are not built")

// ErrBlobLimitReached means that a block has no room for the blobs of a transaction. Another block may.
var ErrBlobLimitReached = errors.New("blob limit reached")

// LeftOut is a transaction that a built block does not include, and why: ErrBlobLimitReached, or an error of
// go-ethereum's package core.
type LeftOut struct {
	Transaction *types.Transaction
	Err         error
}

// BaseFee is the base fee of the block after parent.
func (e *Executor) BaseFee(parent *types.Header) *big.Int {
	return eip1559.CalcBaseFee(e.config, parent)
}

// Build makes the block after a parent from transactions in their order, and leaves
// out those that cannot be included. Build already computes the state root:
// [Executor.Root] only makes the delta.
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
	r := e.beginRun(ctx, parent, header, statedb, &db.readFailure)
	defer r.release()
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
	list, err := encodeAccessList(header, ran.list)
	if err != nil {
		return nil, nil, err
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
	return &Executed{
		Block: block, Senders: ran.senders, Receipts: ran.receipts, AccessList: list, Traces: ran.traces,
		update: db.update, rooted: true,
	}, leftOut, nil
}

// encodeAccessList puts the hash of a block's access list into its header, and
// returns the encoded list. Before Amsterdam there is neither.
func encodeAccessList(header *types.Header, list *bal.ConstructionBlockAccessList) ([]byte, error) {
	if list == nil {
		return nil, nil
	}
	encoded, err := rlp.EncodeToBytes(list)
	if err != nil {
		return nil, fmt.Errorf("encode the access list of block %d: %w", header.Number, err)
	}
	hash := crypto.Keccak256Hash(encoded)
	header.BlockAccessListHash = &hash
	return encoded, nil
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
	if e.config.IsAmsterdam(header.Number, header.Time) {
		header.SlotNumber = &attributes.SlotNumber
	}
	return header, nil
}

// include runs what can be included and puts it into body.
func (r *blockRun) include(body *types.Body, transactions types.Transactions) ([]LeftOut, error) {
	var leftOut []LeftOut
	maxBlobGas := uint64(eip4844.MaxBlobsPerBlock(r.executor.config, r.header.Time)) * params.BlobTxBlobGasPerBlob
	for _, tx := range transactions {
		blobGas := *r.header.BlobGasUsed + tx.BlobGas()
		if blobGas > maxBlobGas {
			leftOut = append(leftOut, LeftOut{tx, fmt.Errorf("%w: the block has no room for %d more", ErrBlobLimitReached, len(tx.BlobHashes()))})
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
