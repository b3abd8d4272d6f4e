package evm

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// Transaction is a decoded view of an encoded transaction (EIP-2718): its slices alias
// the encoding, and decoding allocates nothing. Numbers that may exceed 64 bits are
// big-endian without leading zeros. Fields that the type lacks are nil; lists are their
// RLP content, without the list's own header.
type Transaction struct {
	Type           byte
	ChainID        []byte // types 1 and up; V may hold that of a legacy transaction
	Nonce          uint64
	GasPrice       []byte // types 0 and 1
	GasTipCap      []byte // types 2 and up
	GasFeeCap      []byte // types 2 and up
	Gas            uint64
	To             []byte // 20 bytes, or empty for a contract creation
	Value          []byte
	Data           []byte
	AccessList     []byte // types 1 and up: lists of an address and a list of keys
	BlobFeeCap     []byte // type 3
	BlobHashes     []byte // type 3: strings of 32 bytes
	Authorizations []byte // type 4: lists of chain, address, nonce, y parity, r, s
	V, R, S        []byte
}

// ErrTransaction means that bytes are not an encoded transaction of a known type.
var ErrTransaction = errors.New("not an encoded transaction")

// ReadTransaction decodes a transaction, which aliases raw.
func ReadTransaction(raw []byte) (t Transaction, err error) {
	if len(raw) == 0 {
		return t, fmt.Errorf("%w: it is empty", ErrTransaction)
	}
	if raw[0] < 0x80 {
		t.Type, raw = raw[0], raw[1:]
	}
	if t.Type > types.SetCodeTxType {
		return t, fmt.Errorf("%w: type %d (want 0 to %d)", ErrTransaction, t.Type, types.SetCodeTxType)
	}
	fields, rest, err := rlp.SplitList(raw)
	if err != nil || len(rest) != 0 {
		return t, fmt.Errorf("%w: expected one list", ErrTransaction)
	}
	w := walker{rest: fields}
	if t.Type != types.LegacyTxType {
		t.ChainID = w.bytes()
	}
	t.Nonce = w.uint64()
	if t.Type < types.DynamicFeeTxType {
		t.GasPrice = w.bytes()
	} else {
		t.GasTipCap, t.GasFeeCap = w.bytes(), w.bytes()
	}
	t.Gas, t.To, t.Value, t.Data = w.uint64(), w.bytes(), w.bytes(), w.bytes()
	if t.Type != types.LegacyTxType {
		t.AccessList = w.list()
	}
	switch t.Type {
	case types.BlobTxType:
		t.BlobFeeCap, t.BlobHashes = w.bytes(), w.list()
	case types.SetCodeTxType:
		t.Authorizations = w.list()
	}
	t.V, t.R, t.S = w.bytes(), w.bytes(), w.bytes()
	if w.err != nil || len(w.rest) != 0 || len(t.To) != 0 && len(t.To) != common.AddressLength {
		return t, fmt.Errorf("%w: its fields are not those of type %d", ErrTransaction, t.Type)
	}
	return t, nil
}

// walker reads consecutive RLP values. After an error it returns zero values.
type walker struct {
	rest []byte
	err  error
}

func (w *walker) bytes() (value []byte) {
	if w.err == nil {
		value, w.rest, w.err = rlp.SplitString(w.rest)
	}
	return value
}

func (w *walker) list() (content []byte) {
	if w.err == nil {
		content, w.rest, w.err = rlp.SplitList(w.rest)
	}
	return content
}

func (w *walker) uint64() (value uint64) {
	if w.err == nil {
		value, w.rest, w.err = rlp.SplitUint64(w.rest)
	}
	return value
}

// ChainIDOfV returns the chain that a legacy transaction is bound to (EIP-155), or false
// if it is bound to none.
func (t *Transaction) ChainIDOfV() (id uint256.Int, protected bool) {
	id.SetBytes(t.V)
	if id.LtUint64(35) {
		return uint256.Int{}, false
	}
	id.SubUint64(&id, 35)
	id.Rsh(&id, 1)
	return id, !id.IsZero()
}

// EffectiveGasPrice returns the price that the sender pays for a unit of gas in a block
// with a base fee, nil for a block before London.
func (t *Transaction) EffectiveGasPrice(baseFee *uint256.Int) (price uint256.Int) {
	if t.Type < types.DynamicFeeTxType {
		price.SetBytes(t.GasPrice)
		return price
	}
	var feeCap uint256.Int
	feeCap.SetBytes(t.GasFeeCap)
	if baseFee == nil {
		return feeCap
	}
	price.SetBytes(t.GasTipCap)
	if _, overflow := price.AddOverflow(&price, baseFee); overflow || price.Gt(&feeCap) {
		return feeCap
	}
	return price
}

// EffectiveTip returns the part of the effective gas price that the block's beneficiary
// receives. baseFee is nil for a block before London.
func (t *Transaction) EffectiveTip(baseFee *uint256.Int) (tip uint256.Int) {
	if baseFee == nil {
		baseFee = new(uint256.Int)
	}
	tip = t.EffectiveGasPrice(baseFee)
	if _, below := tip.SubOverflow(&tip, baseFee); below {
		tip.Clear()
	}
	return tip
}
