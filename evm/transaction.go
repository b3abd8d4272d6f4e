package evm

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// Transaction is an encoded transaction (EIP-2718) taken apart in place: its
// slices are parts of the encoding, and nothing is allocated. Numbers that may
// exceed 64 bits are big-endian without leading zeros. What a type does not have
// is nil; lists are their RLP content, without the list's own header.
type Transaction struct {
	Type           byte
	ChainID        []byte // types 1 and up; of a legacy transaction V may tell it
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

// ErrTransaction says that bytes are no encoded transaction of a known type.
var ErrTransaction = errors.New("not an encoded transaction")

// ReadTransaction takes an encoded transaction apart. The transaction refers to raw.
func ReadTransaction(raw []byte) (t Transaction, err error) {
	if len(raw) == 0 {
		return t, fmt.Errorf("%w: it is empty", ErrTransaction)
	}
	if raw[0] < 0x80 {
		t.Type, raw = raw[0], raw[1:]
	}
	if t.Type > types.SetCodeTxType {
		return t, fmt.Errorf("%w: type %d, known are 0 to %d", ErrTransaction, t.Type, types.SetCodeTxType)
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

// walker reads one RLP value after the other; after the first that does not fit
// it returns nothing more.
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

// ChainIDOfV is the chain that a legacy transaction is bound to (EIP-155), and
// false where it is bound to none.
func (t *Transaction) ChainIDOfV() (id uint256.Int, protected bool) {
	id.SetBytes(t.V)
	if id.LtUint64(35) {
		return uint256.Int{}, false
	}
	id.SubUint64(&id, 35)
	id.Rsh(&id, 1)
	return id, !id.IsZero()
}

// EffectiveGasPrice is what a unit of gas costs the sender in a block with that
// base fee; nil means a block of a time before base fees.
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

// EffectiveTip is the part of the effective gas price that goes to the block's
// beneficiary; nil means a block of a time before base fees.
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
