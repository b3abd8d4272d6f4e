// Package check recomputes what nodes say about a block from the block's hash: the hash from
// the header, the roots of transactions, withdrawals and receipts from their contents. What is
// returned is made from what was recomputed, so it is exact and complete, or an error.
//
// Headers, transactions and receipts are those of Ethereum, and the deposits of the OP stack
// (type 0x7e). What no root covers, such as the share of layer 1 in the fee of a transaction,
// is left out.
package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

var (
	// ErrUncheckable means that a block has something that is not checked here. It says nothing
	// about the node.
	ErrUncheckable = errors.New("it cannot be checked")

	// ErrUncles, ErrTransactions and ErrOutcomes wrap it.
	ErrUncles       = fmt.Errorf("%w: the block has uncles", ErrUncheckable)
	ErrTransactions = fmt.Errorf("%w: the block has a transaction of an unknown type or without a valid signature", ErrUncheckable)
	ErrOutcomes     = fmt.Errorf("%w: the receipts may lack the state roots that they had before Byzantium", ErrUncheckable)
)

// Block is a block that agrees with its hash.
type Block struct {
	Header       *types.Header
	Hash         common.Hash
	Transactions []Transaction
	Withdrawals  types.Withdrawals // nil before Shanghai
}

// DecodeHeader decodes a block, of which only the header is checked: it agrees with the hash.
func DecodeHeader(block json.RawMessage) (*types.Header, common.Hash, error) {
	header := new(types.Header)
	if err := json.Unmarshal(block, header); err != nil {
		return nil, common.Hash{}, fmt.Errorf("decode the header: %w", err)
	}
	var claimed struct {
		Hash *common.Hash `json:"hash"`
	}
	if err := json.Unmarshal(block, &claimed); err != nil || claimed.Hash == nil {
		return nil, common.Hash{}, errors.New("the block has no hash")
	}
	if hash := header.Hash(); hash != *claimed.Hash {
		return nil, common.Hash{}, fmt.Errorf("the hash of the header is %s, the node says %s", hash, *claimed.Hash)
	}
	return complete(header), *claimed.Hash, nil
}

// complete returns a header as its hash covers it. A number that is missing before other fields, such
// as the gas of blobs, has the encoding of zero, so a node could leave it out.
func complete(header *types.Header) *types.Header {
	encoded, err := rlp.EncodeToBytes(header)
	whole := new(types.Header)
	if err != nil || rlp.DecodeBytes(encoded, whole) != nil {
		return header
	}
	return whole
}

// HeadJSON returns what is kept of a block with a checked header: the header, and the hash of the first
// transaction as an example, which is not checked.
func HeadJSON(header *types.Header, block json.RawMessage) (json.RawMessage, error) {
	members, err := membersOf(header)
	if err != nil {
		return nil, err
	}
	var body struct {
		Transactions []common.Hash `json:"transactions"`
	}
	_ = json.Unmarshal(block, &body) // a node that sends something else has no example
	members["transactions"] = append([]common.Hash{}, body.Transactions[:min(1, len(body.Transactions))]...)
	return json.Marshal(members)
}

// DecodeBlock decodes and checks a block with whole transactions, as eth_getBlockByHash
// returns it.
func DecodeBlock(block json.RawMessage) (*Block, error) {
	header, hash, err := DecodeHeader(block)
	if err != nil {
		return nil, err
	}
	var body struct {
		Transactions []json.RawMessage `json:"transactions"`
		Uncles       []common.Hash     `json:"uncles"`
		Withdrawals  types.Withdrawals `json:"withdrawals"`
	}
	if err := json.Unmarshal(block, &body); err != nil {
		return nil, fmt.Errorf("decode the body: %w", err)
	}
	b := &Block{Header: header, Hash: hash, Withdrawals: body.Withdrawals}
	deposits, unsigned := false, error(nil)
	for i, raw := range body.Transactions {
		tx, err := decodeTransaction(raw)
		if err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		deposits = deposits || tx.deposit != nil
		if err := tx.recoverSender(); err != nil && unsigned == nil {
			unsigned = fmt.Errorf("%w: transaction %d: %w", ErrTransactions, i, err)
		}
		b.Transactions = append(b.Transactions, tx)
	}
	if root := types.DeriveSha(transactions(b.Transactions), trie.NewStackTrie(nil)); root != header.TxHash {
		return nil, fmt.Errorf("the root of the transactions is %s, the header says %s", root, header.TxHash)
	}
	if header.UncleHash != types.EmptyUncleHash || len(body.Uncles) > 0 {
		return nil, ErrUncles
	}
	if unsigned != nil { // the root covers what is there in its place
		return nil, unsigned
	}
	return b, b.checkWithdrawals(deposits)
}

// checkWithdrawals checks the withdrawals. On the OP stack the root in the header is that of
// a contract's storage, or empty, and there are no withdrawals.
func (b *Block) checkWithdrawals(deposits bool) error {
	switch root := b.Header.WithdrawalsHash; {
	case root == nil && len(b.Withdrawals) > 0:
		return errors.New("the block has withdrawals, and the header has no root of them")
	case root == nil:
		b.Withdrawals = nil
		return nil
	case deposits && len(b.Withdrawals) == 0:
		b.Withdrawals = types.Withdrawals{}
		return nil
	default:
		if b.Withdrawals == nil {
			b.Withdrawals = types.Withdrawals{}
		}
		if got := types.DeriveSha(b.Withdrawals, trie.NewStackTrie(nil)); got != *root {
			return fmt.Errorf("the root of the withdrawals is %s, the header says %s", got, root)
		}
		return nil
	}
}

// Find returns the index of a transaction, and false if the block does not have it.
func (b *Block) Find(hash common.Hash) (int, bool) {
	for i := range b.Transactions {
		if b.Transactions[i].Hash == hash {
			return i, true
		}
	}
	return 0, false
}

// HasDeposits reports whether a transaction is a deposit, whose nonce is in its receipt.
func (b *Block) HasDeposits() bool {
	for i := range b.Transactions {
		if b.Transactions[i].deposit != nil {
			return true
		}
	}
	return false
}

// JSON returns the block as eth_getBlockByHash returns it. With whole transactions receipts
// are those of the block, if it has deposits.
func (b *Block) JSON(whole bool, receipts []*Receipt) (json.RawMessage, error) {
	members, err := membersOf(b.Header)
	if err != nil {
		return nil, err
	}
	members["size"] = hexutil.Uint64(b.size())
	members["uncles"] = []common.Hash{}
	if b.Withdrawals != nil {
		members["withdrawals"] = b.Withdrawals
	}
	all := make([]any, len(b.Transactions))
	for i := range b.Transactions {
		if all[i] = b.Transactions[i].Hash; whole {
			if all[i], err = b.TransactionJSON(i, receipts); err != nil {
				return nil, err
			}
		}
	}
	members["transactions"] = all
	return json.Marshal(members)
}

// size returns the length of the block's RLP.
func (b *Block) size() uint64 {
	header, _ := rlp.EncodeToBytes(b.Header) // cannot fail
	body := uint64(0)
	for i := range b.Transactions {
		if raw := b.Transactions[i].Raw; raw[0] >= 0xc0 {
			body += uint64(len(raw))
		} else {
			body += rlp.BytesSize(raw)
		}
	}
	content := uint64(len(header)) + rlp.ListSize(body) + rlp.ListSize(0)
	if b.Withdrawals != nil {
		withdrawals, _ := rlp.EncodeToBytes(b.Withdrawals)
		content += uint64(len(withdrawals))
	}
	return rlp.ListSize(content)
}

// membersOf returns the members of a value's JSON.
func membersOf(value any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	members := make(map[string]any, len(raw))
	for name, member := range raw {
		if string(member) != "null" || name == "to" {
			members[name] = member
		}
	}
	return members, nil
}

// transactions implements [types.DerivableList].
type transactions []Transaction

func (t transactions) Len() int                           { return len(t) }
func (t transactions) EncodeIndex(i int, b *bytes.Buffer) { b.Write(t[i].Raw) }
