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

// What the value of a row in the trie_nodes table begins with. A node that is
// gone has an empty value.
const (
	// nodeWhole is followed by the node's RLP.
	nodeWhole = 0
	// nodeLeaf is followed by the rest of the leaf's key (hex-prefix encoded).
	// Its value is in the accounts or slots table as of any block at which
	// this row is the newest, so a change of the value alone writes no row here.
	nodeLeaf = 1
	// nodeDifference is followed by steps, and by what a branch has other than in the
	// row before: which children, two bytes, and the RLP of each.
	nodeDifference = 2
)

const (
	// mostSteps is how many rows are read at most, beside its own, for a version of
	// a branch. Of one child that changed a difference takes 37 bytes where the whole
	// branch takes 533, so that with eight rows to a whole one four times as many
	// versions fit into the store's cache; more rows would save little more.
	mostSteps = 7

	branchChildren    = 16
	differenceMinimum = 1 + 1 + 2 + 1
	// childBytes is the longest RLP of a child: a hash. A node of less than 32 bytes
	// stands there itself.
	childBytes = 1 + common.HashLength
)

// appendNode appends the value of a node's row, and says whether the row must
// be written: a node that is as it was needs none, nor a leaf that stays where it was.
func appendNode(dst, key []byte, node evm.Node, stored nodeSteps) (value []byte, changed bool, err error) {
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
	value, steps, err := appendBranch(dst, key, node, stored)
	if err != nil {
		return dst, false, err
	}
	stored.wrote(key, steps)
	return value, true, nil
}

// appendBranch appends the value of the row of a branch, or of an extension, and
// returns how many rows lead from it to a whole one.
func appendBranch(dst, key []byte, node evm.Node, stored nodeSteps) (value []byte, steps int, err error) {
	after, isBranch := splitBranch(node.Blob)
	before, wasBranch := splitBranch(node.Prev)
	if isBranch && wasBranch {
		if steps, err = stored.steps(key); err != nil {
			return dst, 0, err
		}
		if steps < mostSteps {
			value = appendDifference(dst, &before, &after, steps+1)
			if 2*(len(value)-len(dst)) <= len(node.Blob) {
				return value, steps + 1, nil
			}
		}
	}
	return append(append(dst, nodeWhole), node.Blob...), 0, nil
}

// branch is a branch node taken apart: the RLP of each child.
type branch [branchChildren][]byte

// splitBranch takes the RLP of a node apart; false where it is no branch. The
// keys of both kinds of trie are of one length, so no branch has a value.
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

// splitChild takes the RLP of one child from the front of items: nearly always a
// hash, or nothing.
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

// size is how long, in RLP, the children and the value are together.
func (b *branch) size() int {
	size := len(rlp.EmptyString) // the value
	for _, child := range b {
		size += len(child)
	}
	return size
}

// maxListHead is the most that the RLP of a branch has before its children.
const maxListHead = 3

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

// appendDifference appends a row that says in what after differs from before.
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

// difference is a nodeDifference row taken apart. It refers to the row.
type difference struct {
	steps    int
	changed  uint16 // bit i: child i
	children [branchChildren][]byte
}

func decodeDifference(row []byte) (d difference, err error) {
	if len(row) < differenceMinimum {
		return d, fmt.Errorf("%w: trie_nodes row: a difference of %d bytes, expected at least %d", ErrCorrupt, len(row), differenceMinimum)
	}
	d.steps, d.changed = int(row[1]), binary.BigEndian.Uint16(row[2:])
	items, ok := row[4:], d.steps > 0 && d.steps <= mostSteps && d.changed != 0
	for left := d.changed; left != 0 && ok; left &= left - 1 {
		d.children[bits.TrailingZeros16(left)], items, ok = splitChild(items)
	}
	if !ok || len(items) > 0 {
		return d, fmt.Errorf("%w: trie_nodes row: %#x is no difference of a branch", ErrCorrupt, row)
	}
	return d, nil
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
	key, value, err := rlp.SplitString(items)
	if err != nil || len(key) == 0 || key[0]&0x20 == 0 {
		return nil, false
	}
	_, _, behind, err := rlp.Split(value)
	return key, err == nil && len(behind) == 0
}

// fullKey joins the path of a leaf and the hex-prefix encoded rest of its key to
// the 32 bytes of the key, or returns false when they do not fit.
func fullKey(path []byte, rest []byte) (key common.Hash, ok bool) {
	nibbles := append(make([]byte, 0, evm.KeyNibbles), path...)
	nibbles, _, ok = evm.AppendHexPrefix(nibbles, rest)
	if !ok || len(nibbles) != evm.KeyNibbles {
		return key, false
	}
	return evm.NibblesKey(nibbles), true
}

// encodeLeaf makes the RLP of a leaf from the hex-prefix encoded rest of its key and its value.
func encodeLeaf(rest, value []byte) ([]byte, error) {
	return rlp.EncodeToBytes([][]byte{rest, value})
}
