package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// depositType is the type of deposits of the OP stack.
const depositType = 0x7e

// Transaction is a transaction of a block.
type Transaction struct {
	Raw     []byte // as the root of transactions covers it
	Hash    common.Hash
	From    common.Address
	signed  *types.Transaction // nil for a deposit
	deposit *deposit
}

// deposit is a transaction that the OP stack takes from layer 1. It has no signature.
type deposit struct {
	SourceHash common.Hash
	From       common.Address
	To         *common.Address `rlp:"nil"`
	Mint       *big.Int        `rlp:"nil"`
	Value      *big.Int
	Gas        uint64
	IsSystem   bool
	Data       []byte
}

func decodeTransaction(raw json.RawMessage) (tx Transaction, err error) {
	var kind struct {
		Type hexutil.Uint64 `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return tx, fmt.Errorf("expected a whole transaction: %w", err)
	}
	if kind.Type == depositType {
		return decodeDeposit(raw)
	}
	tx.signed = new(types.Transaction)
	if err := tx.signed.UnmarshalJSON(raw); errors.Is(err, types.ErrTxTypeNotSupported) {
		return tx, fmt.Errorf("%w: %#x", ErrTransactions, uint64(kind.Type))
	} else if err != nil {
		return tx, err
	}
	if tx.Raw, err = tx.signed.MarshalBinary(); err != nil {
		return tx, err
	}
	tx.Hash = tx.signed.Hash()
	return tx, nil
}

// recoverSender sets the sender of a transaction that is signed.
func (tx *Transaction) recoverSender() (err error) {
	if tx.signed != nil {
		tx.From, err = types.Sender(signerOf(tx.signed), tx.signed)
	}
	return err
}

// signerOf returns the rules by which a transaction is signed. Those of a chain with the ID 0
// do not exist: go-ethereum panics. A signature without an ID may be from before Homestead, when both
// values of s were valid.
func signerOf(tx *types.Transaction) types.Signer {
	if id := tx.ChainId(); id.Sign() > 0 {
		return types.LatestSignerForChainID(id)
	}
	return types.FrontierSigner{}
}

func decodeDeposit(raw json.RawMessage) (tx Transaction, err error) {
	var d struct {
		SourceHash *common.Hash    `json:"sourceHash"`
		From       *common.Address `json:"from"`
		To         *common.Address `json:"to"`
		Mint       *hexutil.Big    `json:"mint"`
		Value      *hexutil.Big    `json:"value"`
		Gas        *hexutil.Uint64 `json:"gas"`
		IsSystem   bool            `json:"isSystemTx"`
		Input      *hexutil.Bytes  `json:"input"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return tx, err
	}
	if d.SourceHash == nil || d.From == nil || d.Value == nil || d.Gas == nil || d.Input == nil {
		return tx, errors.New("a deposit lacks sourceHash, from, value, gas or input")
	}
	tx.deposit = &deposit{*d.SourceHash, *d.From, d.To, (*big.Int)(d.Mint), (*big.Int)(d.Value), uint64(*d.Gas), d.IsSystem, *d.Input}
	encoded, err := rlp.EncodeToBytes(tx.deposit)
	if err != nil {
		return tx, err
	}
	tx.Raw = append([]byte{depositType}, encoded...)
	tx.Hash, tx.From = crypto.Keccak256Hash(tx.Raw), tx.deposit.From
	return tx, nil
}

// to returns the recipient, nil for the creation of a contract.
func (tx *Transaction) to() *common.Address {
	if tx.deposit != nil {
		return tx.deposit.To
	}
	return tx.signed.To()
}

// TransactionJSON returns a transaction of the block as eth_getTransactionByHash returns it.
// receipts are those of the block, if it has deposits.
func (b *Block) TransactionJSON(i int, receipts []*Receipt) (json.RawMessage, error) {
	tx := &b.Transactions[i]
	var members map[string]any
	if d := tx.deposit; d != nil {
		members = map[string]any{
			"type": hexutil.Uint64(depositType), "sourceHash": d.SourceHash, "to": d.To, "value": (*hexutil.Big)(d.Value), "gas": hexutil.Uint64(d.Gas),
			"input": hexutil.Bytes(d.Data), "hash": tx.Hash, "gasPrice": "0x0", "v": "0x0", "r": "0x0", "s": "0x0", "nonce": "0x0",
		}
		if d.IsSystem { // else nodes leave it out
			members["isSystemTx"] = true
		}
		if d.Mint != nil {
			members["mint"] = (*hexutil.Big)(d.Mint)
		}
		// Its nonce is in the receipt, where the root covers it since Canyon.
		if i < len(receipts) && receipts[i].depositVersion != nil {
			members["nonce"], members["depositReceiptVersion"] = receipts[i].depositNonce, receipts[i].depositVersion
		}
	} else {
		var err error
		if members, err = membersOf(tx.signed); err != nil {
			return nil, err
		}
		members["gasPrice"] = (*hexutil.Big)(b.price(tx.signed))
	}
	members["from"], members["blockHash"] = tx.From, b.Hash
	members["blockNumber"], members["transactionIndex"] = (*hexutil.Big)(b.Header.Number), hexutil.Uint64(i)
	members["blockTimestamp"] = hexutil.Uint64(b.Header.Time)
	return json.Marshal(members)
}

// price returns what a transaction pays per gas.
func (b *Block) price(tx *types.Transaction) *big.Int {
	if b.Header.BaseFee == nil {
		return tx.GasPrice()
	}
	price := new(big.Int).Add(tx.GasTipCap(), b.Header.BaseFee)
	if price.Cmp(tx.GasFeeCap()) > 0 {
		return tx.GasFeeCap()
	}
	return price
}
