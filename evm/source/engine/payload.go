package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// payload is an execution payload: a block without what follows from the rest of it.
type payload struct {
	header       types.Header
	hash         common.Hash // that the block is said to have
	transactions types.Transactions
	withdrawals  types.Withdrawals // nil where there is no such member
	undecodable  error             // what is wrong with the first transaction that is none
}

// members are those of ExecutionPayloadV1.
func (p *payload) members() map[string]member {
	h := &p.header
	h.Number = new(big.Int)
	return map[string]member{
		"parentHash": into(h.ParentHash[:]), "feeRecipient": into(h.Coinbase[:]), "stateRoot": into(h.Root[:]),
		"receiptsRoot": into(h.ReceiptHash[:]), "logsBloom": into(h.Bloom[:]), "prevRandao": into(h.MixDigest[:]),
		"gasLimit": number(&h.GasLimit), "gasUsed": number(&h.GasUsed), "timestamp": number(&h.Time),
		"baseFeePerGas": bigNumber(&h.BaseFee), "blockHash": into(p.hash[:]), "transactions": p.readTransactions,
		"blockNumber": func(raw []byte) error {
			var value uint64
			err := number(&value)(raw)
			h.Number.SetUint64(value)
			return err
		},
		"extraData": func(raw []byte) (err error) {
			h.Extra, err = bytesOf(raw)
			return err
		},
	}
}

// withdrawalMembers are those that ExecutionPayloadV2 has besides.
func (p *payload) withdrawalMembers() map[string]member {
	return map[string]member{"withdrawals": p.readWithdrawals}
}

// blobMembers are those that ExecutionPayloadV3 has besides.
func (p *payload) blobMembers() map[string]member {
	return map[string]member{
		"blobGasUsed":   optionalNumber(&p.header.BlobGasUsed),
		"excessBlobGas": optionalNumber(&p.header.ExcessBlobGas),
	}
}

// readTransactions takes note of a transaction that is none, which is no error of
// the call: the block is invalid.
func (p *payload) readTransactions(raw []byte) error {
	return readArray(raw, func(i int, raw []byte) error {
		data, err := bytesOf(raw)
		if err != nil || p.undecodable != nil {
			return err
		}
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(data); err != nil {
			p.undecodable = fmt.Errorf("transaction %d: %w", i, err)
			return nil
		}
		p.transactions = append(p.transactions, tx)
		return nil
	})
}

func (p *payload) readWithdrawals(raw []byte) error {
	p.withdrawals = types.Withdrawals{}
	return readArray(raw, func(_ int, raw []byte) error {
		w := new(types.Withdrawal)
		p.withdrawals = append(p.withdrawals, w)
		return readObject(raw, "withdrawal", map[string]member{
			"index": number(&w.Index), "validatorIndex": number(&w.Validator),
			"address": into(w.Address[:]), "amount": number(&w.Amount),
		})
	})
}

// readPayload reads a payload of a version. In the second, withdrawals are there or not.
func readPayload(raw []byte, v payloadVersion) (*payload, error) {
	p := new(payload)
	members := p.members()
	if v.withdrawals && (!v.withdrawalsMayLack || has(raw, "withdrawals")) {
		maps.Copy(members, p.withdrawalMembers())
	}
	if v.blobs {
		maps.Copy(members, p.blobMembers())
	}
	return p, readObject(raw, "executionPayload", members)
}

// has says whether an object has a member that is not null.
func has(raw []byte, name string) bool {
	given, ok := jsonrpc.Object(raw)
	if !ok {
		return false
	}
	for given.Next() {
		if string(given.Name()) == name && !jsonrpc.IsNull(given.Value()) {
			return true
		}
	}
	return false
}

// surroundings are what comes beside a payload, since Cancun and Prague; nil before.
type surroundings struct {
	blobHashes []common.Hash // of all transactions
	beaconRoot *common.Hash
	requests   [][]byte
}

var errBlobHashes = errors.New("the blob hashes are not those of its transactions")

// block puts the block together. Its error says why it is invalid, errBlockHash
// that it is not the one that it is said to be.
func (p *payload) block(beside surroundings) (*types.Block, error) {
	if p.undecodable != nil {
		return nil, p.undecodable
	}
	var blobHashes []common.Hash
	for _, tx := range p.transactions {
		blobHashes = append(blobHashes, tx.BlobHashes()...)
	}
	if !slices.Equal(blobHashes, beside.blobHashes) {
		return nil, fmt.Errorf("%w: %d are expected, its transactions have %d", errBlobHashes, len(beside.blobHashes), len(blobHashes))
	}
	header := types.CopyHeader(&p.header)
	header.UncleHash, header.Difficulty = types.EmptyUncleHash, new(big.Int)
	header.TxHash = types.DeriveSha(p.transactions, trie.NewStackTrie(nil))
	header.ParentBeaconRoot = beside.beaconRoot
	if p.withdrawals != nil {
		root := types.DeriveSha(p.withdrawals, trie.NewStackTrie(nil))
		header.WithdrawalsHash = &root
	}
	if beside.requests != nil {
		commitment := types.CalcRequestsHash(beside.requests)
		header.RequestsHash = &commitment
	}
	if got := header.Hash(); got != p.hash {
		return nil, &hashError{p.hash, got}
	}
	return types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: p.transactions, Withdrawals: p.withdrawals}), nil
}

// hashError says that a block is not the one that it is said to be.
type hashError struct{ want, got common.Hash }

func (e *hashError) Error() string {
	return fmt.Sprintf("the block's hash is %#x, but it is said to be %#x", e.got, e.want)
}
