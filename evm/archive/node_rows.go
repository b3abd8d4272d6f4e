package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// The first byte of a row in the trie_nodes table. The row of a deleted node is empty.
const (
	// nodeWhole is followed by the node's RLP.
	nodeWhole = 0
	// nodeLeaf is followed by the rest of the leaf's key (hex-prefix encoded). The value is
	// in the accounts or slots table, at any block for which this row is the newest. A
	// change of only the value therefore writes no row here.
	nodeLeaf = 1
	// nodeDifference is followed by steps and the changes of a branch since the previous
	// row: a bit set of children (two bytes), and the RLP of each.
	nodeDifference = 2
	// nodeBase is followed by the RLP of a branch, like nodeWhole. It took the place of a
	// difference whose base was removed, so differences of any steps can follow it.
	nodeBase = 3
)

const (
	// maxSteps is the maximum number of additional rows read for a version of a branch. A
	// difference with one changed child takes 37 bytes, the whole branch 533. So with one
	// whole row in eight, the store's cache holds four times as many versions; a longer
	// chain would save little more.
	maxSteps = 7

	branchChildren    = 16
	differenceMinimum = 1 + 1 + 2 + 1
	// childBytes is the longest RLP of a child, a hash. A node of less than 32 bytes is
	// embedded instead.
	childBytes = 1 + common.HashLength
)

// appendNode appends the value of a node's row, and reports whether the row must be
// written: not for an unchanged node, nor for a leaf with an unchanged key.
func appendNode(dst, key []byte, block uint64, node evm.Node, stored nodeSteps) (value []byte, changed bool, err error) {
	if len(node.Blob) == 0 {
		return dst, true, nil
	}
	if bytes.Equal(node.Blob, node.Prev) {
		return dst, false, nil
	}
	if rest, isLeaf := leafKey(node.Blob); isLeaf {
		if before, wasLeaf := leafKey(node.Prev); wasLeaf && bytes.Equal(before, rest) {
			return dst, false, nil
		}
		return append(append(dst, nodeLeaf), rest...), true, nil
	}
	value, steps, err := appendBranch(dst, key, block, node, stored)
	if err != nil {
		return dst, false, err
	}
	stored.wrote(key, block, steps)
	return value, true, nil
}

// appendBranch appends the row of a branch or an extension, and returns the number of rows
// from it down to a whole one.
func appendBranch(dst, key []byte, block uint64, node evm.Node, stored nodeSteps) (value []byte, steps int, err error) {
	after, isBranch := splitBranch(node.Blob)
	before, wasBranch := splitBranch(node.Prev)
	if isBranch && wasBranch {
		if steps, err = stored.steps(key, block); err != nil {
			return dst, 0, err
		}
		if steps < maxSteps {
			value = appendDifference(dst, &before, &after, steps+1)
			if 2*(len(value)-len(dst)) <= len(node.Blob) {
				return value, steps + 1, nil
			}
		}
	}
	return append(append(dst, nodeWhole), node.Blob...), 0, nil
}

// branch is a decoded branch node: the RLP of each child.
type branch [branchChildren][]byte

// splitBranch decodes the RLP of a branch, or returns false for any other node. Since all
// keys of a trie have the same length, a branch never has a value.
func splitBranch(blob []byte) (b branch, ok bool) {
	items, behind, err := rlp.SplitList(blob)
	if err != nil || len(behind) > 0 {
		return b, false
	}
	for i := range b {
		if b[i], items, ok = splitChild(items); !ok {
			return b, false
		}
	}
	return b, len(items) == 1 && items[0] == rlp.EmptyString[0]
}

// splitChild splits the RLP of one child from the front of items: nearly always a hash, or
// empty.
func splitChild(items []byte) (child, rest []byte, ok bool) {
	switch {
	case len(items) >= childBytes && items[0] == 0x80+common.HashLength:
		return items[:childBytes], items[childBytes:], true
	case len(items) > 0 && items[0] == rlp.EmptyString[0]:
		return items[:1], items[1:], true
	}
	_, _, rest, err := rlp.Split(items)
	child = items[:len(items)-len(rest)]
	return child, rest, err == nil && len(child) <= childBytes
}

// size returns the RLP size of the children and the value.
func (b *branch) size() int {
	size := len(rlp.EmptyString) // the value
	for _, child := range b {
		size += len(child)
	}
	return size
}

// maxListHead is the maximum RLP header size of a branch.
const maxListHead = 3

// fullBytes is the RLP size of a branch whose children are all hashes.
const fullBytes = maxListHead + branchChildren*childBytes + 1

// isFull reports whether blob is the RLP of such a branch.
func isFull(blob []byte) bool {
	const size = fullBytes - maxListHead
	if len(blob) != fullBytes || blob[0] != 0xf9 || blob[1] != size>>8 || blob[2] != size&0xff || blob[fullBytes-1] != rlp.EmptyString[0] {
		return false
	}
	for at := maxListHead; at < fullBytes-1; at += childBytes {
		if blob[at] != 0x80+common.HashLength {
			return false
		}
	}
	return true
}

// appendTo appends the RLP of the branch.
func (b *branch) appendTo(dst []byte) []byte {
	size := b.size()
	switch {
	case size < 56:
		dst = append(dst, 0xc0+byte(size))
	case size < 1<<8:
		dst = append(dst, 0xf8, byte(size))
	default:
		dst = append(dst, 0xf9, byte(size>>8), byte(size))
	}
	for _, child := range b {
		dst = append(dst, child...)
	}
	return append(dst, rlp.EmptyString...)
}

// appendDifference appends the row with the changes from before to after.
func appendDifference(dst []byte, before, after *branch, steps int) []byte {
	var changed uint16
	for i := range after {
		if !bytes.Equal(before[i], after[i]) {
			changed |= 1 << i
		}
	}
	dst = append(dst, nodeDifference, byte(steps))
	dst = binary.BigEndian.AppendUint16(dst, changed)
	for i := range after {
		if changed&(1<<i) != 0 {
			dst = append(dst, after[i]...)
		}
	}
	return dst
}

// difference is a decoded nodeDifference row. It refers to the row.
type difference struct {
	steps    int
	changed  uint16 // bit i: child i
	children [branchChildren][]byte
}

func decodeDifference(row []byte) (d difference, err error) {
	var items []byte
	var ok bool
	d.steps, d.changed, items, ok = differenceHead(row)
	for left := d.changed; left != 0 && ok; left &= left - 1 {
		d.children[bits.TrailingZeros16(left)], items, ok = splitChild(items)
	}
	if !ok || len(items) > 0 {
		return d, invalidDifference(row)
	}
	return d, nil
}

// differenceHead decodes a nodeDifference row up to the items of the children that have changed, or
// returns false if the row cannot be one.
func differenceHead(row []byte) (steps int, changed uint16, items []byte, ok bool) {
	if len(row) < differenceMinimum {
		return 0, 0, nil, false
	}
	steps, changed = int(row[1]), binary.BigEndian.Uint16(row[2:])
	return steps, changed, row[4:], steps > 0 && steps <= maxSteps && changed != 0
}

func invalidDifference(row []byte) error {
	if len(row) < differenceMinimum {
		return fmt.Errorf("%w: trie_nodes row: a difference of %d bytes, expected at least %d", ErrCorrupt, len(row), differenceMinimum)
	}
	return fmt.Errorf("%w: trie_nodes row: invalid difference %#x", ErrCorrupt, row)
}

// leafKey returns the hex-prefix encoded rest of a leaf's key, or false if the encoded node
// is not a leaf.
func leafKey(blob []byte) (key []byte, ok bool) {
	if len(blob) == 0 {
		return nil, false
	}
	items, _, err := rlp.SplitList(blob)
	if err != nil {
		return nil, false
	}
	key, value, err := rlp.SplitString(items)
	if err != nil || len(key) == 0 || key[0]&0x20 == 0 {
		return nil, false
	}
	_, _, behind, err := rlp.Split(value)
	return key, err == nil && len(behind) == 0
}

// fullKey joins the path of a leaf and the hex-prefix encoded rest of its key, or returns
// false if they do not make 32 bytes.
func fullKey(path []byte, rest []byte) (key common.Hash, ok bool) {
	nibbles := append(make([]byte, 0, evm.KeyNibbles), path...)
	nibbles, _, ok = evm.AppendHexPrefix(nibbles, rest)
	if !ok || len(nibbles) != evm.KeyNibbles {
		return key, false
	}
	return evm.NibblesKey(nibbles), true
}

// encodeLeaf returns the RLP of a leaf from the hex-prefix encoded rest of its key and its
// value.
func encodeLeaf(rest, value []byte) ([]byte, error) {
	return rlp.EncodeToBytes([][]byte{rest, value})
}
