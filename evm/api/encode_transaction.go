package api

import (
	"fmt"
	"math"

	"ashlar/evm"
	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// appendTransaction appends transaction i of a block. hash is the transaction's hash.
func (b *block) appendTransaction(out []byte, i int, hash []byte) ([]byte, error) {
	return b.appendTransactionOf(out, i, hash, math.MaxInt)
}

// appendTransactionOf is appendTransaction with at most so many bytes of the input.
func (b *block) appendTransactionOf(out []byte, i int, hash []byte, input int) ([]byte, error) {
	tx, err := b.transaction(i)
	if err != nil {
		return out, err
	}
	tx.Data = tx.Data[:min(len(tx.Data), input)]
	out = append(out, '{')
	if b.pending {
		out = append(out, noPlace...)
	} else {
		out = b.appendPlace(out, i)
	}
	price := tx.EffectiveGasPrice(b.baseFee)
	if out, err = appendTransaction(out, &tx, b.body.Sender(i), &price, hash); err != nil {
		return out, fmt.Errorf("%w: block %d, transaction %d: %v", archive.ErrCorrupt, b.Number, i, err)
	}
	return append(out, '}'), nil
}

// appendWaiting appends a pooled transaction, with null for its position. raw is its
// encoding without blobs.
func appendWaiting(out, raw []byte, sender common.Address, hash common.Hash) ([]byte, error) {
	tx, err := evm.ReadTransaction(raw)
	if err != nil {
		return out, err
	}
	price := tx.EffectiveGasPrice(nil) // the effective price depends on the block
	out = append(append(out, '{'), noPlace...)
	if out, err = appendTransaction(out, &tx, sender, &price, hash[:]); err != nil {
		return out, err
	}
	return append(out, '}'), nil
}

// noPlace is the position of a transaction that is in no block.
const noPlace = `"blockHash":null,"blockNumber":null,"blockTimestamp":null,"transactionIndex":null`

// appendPlace appends the position of transaction i in its block, without a leading or
// trailing comma. Everything but the index is encoded once per block.
func (b *block) appendPlace(out []byte, i int) []byte {
	if len(b.place) == 0 {
		b.place = appendHex(append(b.place, `"blockHash":`...), b.Hash[:])
		b.place = appendQuantity(append(b.place, `,"blockNumber":`...), b.Number.Uint64())
		b.place = appendQuantity(append(b.place, `,"blockTimestamp":`...), b.Time)
		b.place = append(b.place, `,"transactionIndex":`...)
	}
	return appendQuantity(append(out, b.place...), uint64(i))
}

// appendTransaction appends the members that do not depend on the block, each with a
// leading comma.
func appendTransaction(out []byte, tx *evm.Transaction, sender common.Address, price *uint256.Int, hash []byte) ([]byte, error) {
	out = append(out, `,"from":`...)
	out = appendHex(out, sender[:])
	out = append(out, `,"gas":`...)
	out = appendQuantity(out, tx.Gas)
	out = append(out, `,"gasPrice":`...)
	out = appendUint256(out, price)
	if tx.Type >= types.DynamicFeeTxType {
		out = append(out, `,"maxFeePerGas":`...)
		out = appendQuantityBytes(out, tx.GasFeeCap)
		out = append(out, `,"maxPriorityFeePerGas":`...)
		out = appendQuantityBytes(out, tx.GasTipCap)
	}
	out = append(out, `,"hash":`...)
	out = appendHex(out, hash)
	out = append(out, `,"input":`...)
	out = appendHex(out, tx.Data)
	out = append(out, `,"nonce":`...)
	out = appendQuantity(out, tx.Nonce)
	out = append(out, `,"to":`...)
	out = appendOptionalAddress(out, tx.To)
	out = append(out, `,"value":`...)
	out = appendQuantityBytes(out, tx.Value)
	out = append(out, `,"type":`...)
	out = appendQuantity(out, uint64(tx.Type))
	out, err := appendTypeMembers(out, tx)
	return appendSignature(out, tx), err
}

// transaction decodes transaction i of a block in place.
func (b *block) transaction(i int) (evm.Transaction, error) {
	raw, err := b.body.Transaction(i)
	if err != nil {
		return evm.Transaction{}, err
	}
	tx, err := evm.ReadTransaction(raw)
	if err != nil {
		return tx, fmt.Errorf("%w: block %d, transaction %d: %v", archive.ErrCorrupt, b.Number, i, err)
	}
	return tx, nil
}

// appendOptionalAddress appends an address, or null if it is empty.
func appendOptionalAddress(out, address []byte) []byte {
	if len(address) == 0 {
		return appendNull(out)
	}
	return appendHex(out, address)
}

// appendTypeMembers appends the members that only some types of transaction have.
func appendTypeMembers(out []byte, tx *evm.Transaction) (_ []byte, err error) {
	if tx.Type == types.LegacyTxType {
		if id, protected := tx.ChainIDOfV(); protected {
			out = append(out, `,"chainId":`...)
			out = appendUint256(out, &id)
		}
		return out, nil
	}
	out = append(out, `,"chainId":`...)
	out = appendQuantityBytes(out, tx.ChainID)
	if out, err = appendList(append(out, `,"accessList":`...), tx.AccessList, appendAccessTuple); err != nil {
		return out, err
	}
	switch tx.Type {
	case types.BlobTxType:
		out = append(out, `,"maxFeePerBlobGas":`...)
		out = appendQuantityBytes(out, tx.BlobFeeCap)
		if len(tx.BlobHashes) > 0 {
			out, err = appendList(append(out, `,"blobVersionedHashes":`...), tx.BlobHashes, appendHexItem)
		}
	case types.SetCodeTxType:
		if len(tx.Authorizations) > 0 {
			out, err = appendList(append(out, `,"authorizationList":`...), tx.Authorizations, appendAuthorization)
		}
	}
	return out, err
}

func appendSignature(out []byte, tx *evm.Transaction) []byte {
	out = append(out, `,"v":`...)
	out = appendQuantityBytes(out, tx.V)
	out = append(out, `,"r":`...)
	out = appendQuantityBytes(out, tx.R)
	out = append(out, `,"s":`...)
	out = appendQuantityBytes(out, tx.S)
	if tx.Type != types.LegacyTxType {
		out = append(out, `,"yParity":`...)
		out = appendQuantityBytes(out, tx.V)
	}
	return out
}

// appendList appends the items of an RLP list as an array. appendItem appends the first
// item of list and returns the rest.
func appendList(out, list []byte, appendItem func(out, list []byte) (_, rest []byte, err error)) (_ []byte, err error) {
	out = append(out, '[')
	for first := true; len(list) > 0; first = false {
		if !first {
			out = append(out, ',')
		}
		if out, list, err = appendItem(out, list); err != nil {
			return out, err
		}
	}
	return append(out, ']'), nil
}

// appendHexItem appends a string item of an RLP list as hex.
func appendHexItem(out, list []byte) (_, rest []byte, err error) {
	item, rest, err := rlp.SplitString(list)
	return appendHex(out, item), rest, err
}

// appendAccessTuple appends an address with its storage keys.
func appendAccessTuple(out, list []byte) (_, rest []byte, err error) {
	tuple, rest, err := rlp.SplitList(list)
	if err != nil {
		return out, nil, err
	}
	if out, tuple, err = appendHexItem(append(out, `{"address":`...), tuple); err != nil {
		return out, nil, err
	}
	keys, _, err := rlp.SplitList(tuple)
	if err != nil {
		return out, nil, err
	}
	out, err = appendList(append(out, `,"storageKeys":`...), keys, appendHexItem)
	return append(out, '}'), rest, err
}

// appendAuthorization appends an authorization (EIP-7702).
func appendAuthorization(out, list []byte) (_, rest []byte, err error) {
	entry, rest, err := rlp.SplitList(list)
	if err != nil {
		return out, nil, err
	}
	var fields [6][]byte // chain, address, nonce, y parity, r, s
	for i := range fields {
		if fields[i], entry, err = rlp.SplitString(entry); err != nil {
			return out, nil, err
		}
	}
	out = append(out, `{"chainId":`...)
	out = appendQuantityBytes(out, fields[0])
	out = append(out, `,"address":`...)
	out = appendHex(out, fields[1])
	out = append(out, `,"nonce":`...)
	out = appendQuantityBytes(out, fields[2])
	out = append(out, `,"yParity":`...)
	out = appendQuantityBytes(out, fields[3])
	out = append(out, `,"r":`...)
	out = appendQuantityBytes(out, fields[4])
	out = append(out, `,"s":`...)
	out = appendQuantityBytes(out, fields[5])
	return append(out, '}'), rest, nil
}
