package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"

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

// appendAccount appends the value of a row in the accounts table. It is empty for a deleted
// account, and otherwise
//
//	flags byte | uvarint nonce | length byte, balance | [storage root] | [code hash]
func appendAccount(dst []byte, account *types.StateAccount) []byte {
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
	balance := account.Balance.Bytes32()
	trimmed := common.TrimLeftZeroes(balance[:])
	dst = append(append(dst, byte(len(trimmed))), trimmed...)
	if flags&accountHasStorage != 0 {
		dst = append(dst, account.Root[:]...)
	}
	if flags&accountHasCode != 0 {
		dst = append(dst, account.CodeHash...)
	}
	return dst
}

// decodeAccount decodes the value of a row in the accounts table; nil for a deleted
// account.
func decodeAccount(row []byte) (*types.StateAccount, error) {
	if len(row) == 0 {
		return nil, nil
	}
	r := rows.Decode(row)
	flags := r.Byte()
	account := &types.StateAccount{Nonce: r.Uvarint(), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]}
	balance := r.Take(uint64(r.Byte()))
	if len(balance) > 32 {
		return nil, fmt.Errorf("%w: accounts row: a balance of %d bytes", ErrCorrupt, len(balance))
	}
	account.Balance = new(uint256.Int).SetBytes(balance)
	if flags&accountHasStorage != 0 {
		copy(account.Root[:], r.Take(common.HashLength))
	}
	if flags&accountHasCode != 0 {
		account.CodeHash = bytes.Clone(r.Take(common.HashLength))
	}
	return account, r.End("accounts")
}
