package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Flags of an account's row: which hashes follow. A missing hash is that of the empty
// value.
const (
	accountHasStorage = 1 << iota
	accountHasCode
)

// AppendAccount appends the value of a row in the accounts table to dst. It is empty for a deleted
// account, and otherwise
//
//	flags byte | uvarint nonce | length byte, balance | [storage root] | [code hash]
func AppendAccount(dst []byte, account *types.StateAccount) []byte {
	if account == nil {
		return dst
	}
	var flags byte
	if account.Root != types.EmptyRootHash {
		flags |= accountHasStorage
	}
	if !bytes.Equal(account.CodeHash, types.EmptyCodeHash[:]) {
		flags |= accountHasCode
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, account.Nonce)
	dst = appendBalance(dst, account.Balance)
	if flags&accountHasStorage != 0 {
		dst = append(dst, account.Root[:]...)
	}
	if flags&accountHasCode != 0 {
		dst = append(dst, account.CodeHash...)
	}
	return dst
}

// appendBalance appends a balance: a length byte, and the number without leading zeros.
func appendBalance(dst []byte, balance *uint256.Int) []byte {
	word := balance.Bytes32()
	trimmed := common.TrimLeftZeroes(word[:])
	return append(append(dst, byte(len(trimmed))), trimmed...)
}

// takeBalance reads what appendBalance has appended into balance.
func takeBalance(r *rows.Decoder, balance *uint256.Int, table *kv.Table) error {
	number := r.Take(uint64(r.Byte()))
	if len(number) > 32 {
		return fmt.Errorf("%w: %s row: a balance of %d bytes", ErrCorrupt, table.Name, len(number))
	}
	balance.SetBytes(number)
	return nil
}

// DecodeAccount decodes the value of a row in the accounts table; nil for a deleted
// account. It keeps nothing of the row.
func DecodeAccount(row []byte) (*types.StateAccount, error) {
	if len(row) == 0 {
		return nil, nil
	}
	r := rows.Decode(row)
	flags := r.Byte()
	made := &struct { // with what it points to, in one piece
		types.StateAccount
		balance  uint256.Int
		codeHash common.Hash
	}{codeHash: types.EmptyCodeHash}
	account := &made.StateAccount
	*account = types.StateAccount{Nonce: r.Uvarint(), Balance: &made.balance, Root: types.EmptyRootHash, CodeHash: made.codeHash[:]}
	if err := takeBalance(&r, &made.balance, accounts); err != nil {
		return nil, err
	}
	if flags&accountHasStorage != 0 {
		copy(account.Root[:], r.Take(common.HashLength))
	}
	if flags&accountHasCode != 0 {
		copy(made.codeHash[:], r.Take(common.HashLength))
	}
	return account, r.End("accounts")
}
