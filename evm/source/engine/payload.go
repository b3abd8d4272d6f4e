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
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// payload is an execution payload: a block without the fields that can be computed.
type payload struct {
	header       types.Header
	hash         common.Hash // the block's hash, as the payload states it
	transactions types.Transactions
	withdrawals  types.Withdrawals    // nil if the payload has no such member
	accessList   *bal.BlockAccessList // nil if the payload has no such member
	undecodable  error                // about the first transaction, or the access list, that cannot be decoded
}

// members are the members of ExecutionPayloadV1.
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

// withdrawalMembers are the additional members of ExecutionPayloadV2.
func (p *payload) withdrawalMembers() map[string]member {
	return map[string]member{"withdrawals": p.readWithdrawals}
}

// blobMembers are the additional members of ExecutionPayloadV3.
func (p *payload) blobMembers() map[string]member {
	return map[string]member{
		"blobGasUsed":   optionalNumber(&p.header.BlobGasUsed),
		"excessBlobGas": optionalNumber(&p.header.ExcessBlobGas),
	}
}

// accessListMembers are the additional members of ExecutionPayloadV4.
func (p *payload) accessListMembers() map[string]member {
	return map[string]member{
		"blockAccessList": p.readAccessList,
		"slotNumber":      optionalNumber(&p.header.SlotNumber),
	}
}

// readAccessList reads the RLP of an access list. Data that is not one makes the block
// invalid, not the call.
func (p *payload) readAccessList(raw []byte) error {
	data, err := bytesOf(raw)
	if err != nil {
		return err
	}
	hash := crypto.Keccak256Hash(data)
	p.header.BlockAccessListHash, p.accessList = &hash, new(bal.BlockAccessList)
	if err := rlp.DecodeBytes(data, p.accessList); err != nil && p.undecodable == nil {
		p.undecodable = fmt.Errorf("block access list: %w", err)
	}
	return nil
}

// readTransactions reads the transactions. One that cannot be decoded makes the block
// invalid, not the call.
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

// readPayload reads a payload of a version. In V2 withdrawals are optional.
func readPayload(raw []byte, v payloadVersion) (*payload, error) {
	p := new(payload)
	members := p.members()
	if v.withdrawals && (!v.withdrawalsMayLack || has(raw, "withdrawals")) {
		maps.Copy(members, p.withdrawalMembers())
	}
	if v.blobs {
		maps.Copy(members, p.blobMembers())
	}
	if v.accessList {
		maps.Copy(members, p.accessListMembers())
	}
	return p, readObject(raw, "executionPayload", members)
}

// has reports whether an object has a member that is not null.
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

// surroundings are the arguments that come with a payload: from Cancun or Prague on, nil
// before.
type surroundings struct {
	blobHashes []common.Hash // of all transactions
	beaconRoot *common.Hash
	requests   [][]byte
}

var errBlobHashes = errors.New("the blob hashes are not those of its transactions")

// block makes the block. Its error says why the block is invalid; a [*hashError] means
// that it does not have the stated hash.
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
	block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: p.transactions, Withdrawals: p.withdrawals})
	return block.WithAccessListUnsafe(p.accessList), nil
}

// hashError means that a block does not have the stated hash.
type hashError struct{ want, got common.Hash }

func (e *hashError) Error() string {
	return fmt.Sprintf("block hash: expected %#x, got %#x", e.want, e.got)
}
