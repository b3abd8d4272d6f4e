package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"ashlar/archive/rows"
	"ashlar/chain/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// Which of an account's hashes its row holds; one that is left out is the empty one.
const (
	accountHasStorage = 1 << iota
	accountHasCode
)

// appendAccount appends the value of a row in the accounts table, which is empty
// for an account that is gone, and else
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

// decodeAccount takes the value of a row in the accounts table apart; nil for
// an account that is gone.
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

// What the value of a row in the trie_nodes table begins with. A node that is
// gone has an empty value.
const (
	// nodeWhole is followed by the node's RLP.
	nodeWhole = 0
	// nodeLeaf is followed by the rest of the leaf's key (hex-prefix encoded).
	// Its value is in the accounts or slots table as of any block at which
	// this row is the newest, so a change of the value alone writes no row here.
	nodeLeaf = 1
)

// appendNode appends the value of a node's row, and says whether the row must
// be written: a leaf that stays where it was needs none.
func appendNode(dst []byte, node evm.Node) (value []byte, changed bool) {
	if len(node.Blob) == 0 {
		return dst, true
	}
	rest, isLeaf := leafKey(node.Blob)
	if !isLeaf {
		return append(append(dst, nodeWhole), node.Blob...), true
	}
	if before, wasLeaf := leafKey(node.Prev); wasLeaf && bytes.Equal(before, rest) {
		return dst, false
	}
	return append(append(dst, nodeLeaf), rest...), true
}

// leafKey returns the hex-prefix encoded rest of a leaf's key, or false when the
// encoded node is no leaf.
func leafKey(blob []byte) (key []byte, ok bool) {
	if len(blob) == 0 {
		return nil, false
	}
	items, _, err := rlp.SplitList(blob)
	if err != nil {
		return nil, false
	}
	if n, err := rlp.CountValues(items); err != nil || n != 2 {
		return nil, false
	}
	key, _, err = rlp.SplitString(items)
	if err != nil || len(key) == 0 || key[0]&0x20 == 0 {
		return nil, false
	}
	return key, true
}

// fullKey joins the path of a leaf and the hex-prefix encoded rest of its key to
// the 32 bytes of the key, or returns false when they do not fit.
func fullKey(path []byte, rest []byte) (key common.Hash, ok bool) {
	if len(rest) == 0 {
		return key, false
	}
	nibbles := make([]byte, 0, 2*common.HashLength)
	nibbles = append(nibbles, path...)
	if rest[0]&0x10 != 0 {
		nibbles = append(nibbles, rest[0]&0x0f)
	}
	for _, b := range rest[1:] {
		nibbles = append(nibbles, b>>4, b&0x0f)
	}
	if len(nibbles) != 2*common.HashLength {
		return key, false
	}
	for i := range key {
		key[i] = nibbles[2*i]<<4 | nibbles[2*i+1]
	}
	return key, true
}

// encodeLeaf makes the RLP of a leaf from the hex-prefix encoded rest of its key and its value.
func encodeLeaf(rest, value []byte) ([]byte, error) {
	return rlp.EncodeToBytes([][]byte{rest, value})
}
