package tries

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// width is the number of children that a branch can have.
const width = 16

// node is a node in memory: *leaf, *extension, *branch, or *unread for one that is not. nil is
// the empty trie.
type node any

// written is what all nodes in memory have.
type written struct {
	rlp   []byte // as of the last commit; nil for a node that is new at its path
	hash  common.Hash
	dirty bool   // rlp and hash are not those of the node as it is now
	round uint32 // in which it was used last
}

type leaf struct {
	written
	key   []byte // nibbles: the rest of the leaf's key
	value []byte
}

type extension struct {
	written
	key   []byte // nibbles
	child node
}

// branch has a child for each bit of has. One that is not in children is that of rlp.
type branch struct {
	written
	has      uint16
	changed  uint16 // children that are not those of rlp; looking at all would take longer
	children [width]node
}

// unread is the RLP of a child that is not in memory: of its hash, or of the node itself if
// that is shorter.
type unread []byte

var errMalformed = errors.New("malformed trie node")

// decode decodes the RLP of a node at a depth, which the node then refers to. A hash does not prove
// that a node is one of a trie: who makes up a state makes up its nodes.
func (t *Tries) decode(encoded []byte, depth int) (node, error) {
	items, behind, err := rlp.SplitList(encoded)
	if err != nil || len(behind) > 0 {
		return nil, errMalformed
	}
	rest := items
	for range 2 {
		if _, rest, err = splitItem(rest); err != nil {
			return nil, err
		}
	}
	if len(rest) == 0 {
		return t.decodeShort(encoded, items, depth)
	}
	if depth >= evm.KeyNibbles {
		return nil, fmt.Errorf("%w: a branch below a whole key", errMalformed)
	}
	return t.decodeBranch(encoded, items)
}

func (t *Tries) decodeShort(encoded, items []byte, depth int) (node, error) {
	compact, rest, err := rlp.SplitString(items)
	if err != nil {
		return nil, errMalformed
	}
	var buffer [evm.KeyNibbles]byte
	key, isLeaf, ok := evm.AppendHexPrefix(buffer[:0], compact)
	if end := depth + len(key); !ok || isLeaf != (end == evm.KeyNibbles) || end > evm.KeyNibbles {
		return nil, fmt.Errorf("%w: a key of %d nibbles", errMalformed, end)
	}
	if !isLeaf {
		if len(key) == 0 {
			return nil, errMalformed
		}
		return &extension{written: written{rlp: encoded}, key: bytes.Clone(key), child: unread(rest)}, nil
	}
	value, _, err := rlp.SplitString(rest)
	if err != nil {
		return nil, errMalformed
	}
	return t.arena.leaf(key, value, encoded, common.Hash{}), nil
}

func (t *Tries) decodeBranch(encoded, items []byte) (node, error) {
	b := t.arena.branch(encoded)
	for i := range width {
		child, rest, err := splitItem(items)
		if err != nil {
			return nil, err
		}
		if child[0] != rlp.EmptyString[0] {
			b.has |= 1 << i
		}
		items = rest
	}
	if !bytes.Equal(items, rlp.EmptyString) || bits.OnesCount16(b.has) < 2 {
		return nil, fmt.Errorf("%w (want 2 items, or %d with at least two children and no value)", errMalformed, width+1)
	}
	return b, nil
}

// splitItem splits the first of some RLP items from the others: nearly always a hash, or empty.
func splitItem(items []byte) (item, rest []byte, err error) {
	switch {
	case len(items) > common.HashLength && items[0] == rlp.EmptyString[0]+common.HashLength:
		return items[:1+common.HashLength], items[1+common.HashLength:], nil
	case len(items) > 0 && items[0] == rlp.EmptyString[0]:
		return items[:1], items[1:], nil
	}
	if _, _, rest, err = rlp.Split(items); err != nil {
		return nil, nil, errMalformed
	}
	return items[:len(items)-len(rest)], rest, nil
}

// child returns a child, which may be unread; nil if there is none.
func (b *branch) child(i byte) (node, error) {
	if b.has&(1<<i) == 0 {
		return nil, nil
	}
	if b.children[i] != nil {
		return b.children[i], nil
	}
	item, err := b.item(i)
	return unread(item), err
}

// item returns the item of a child in the branch's RLP.
func (b *branch) item(i byte) (item []byte, err error) {
	items, _, err := rlp.SplitList(b.rlp)
	if err != nil {
		return nil, errMalformed
	}
	for range i + 1 {
		if item, items, err = splitItem(items); err != nil {
			return nil, err
		}
	}
	return item, nil
}

// set puts a child into memory, which may have changed, or removes it if it is nil.
func (b *branch) set(i byte, child node, changed bool) {
	b.children[i] = child
	b.has |= 1 << i
	if child == nil {
		b.has &^= 1 << i
	}
	if changed {
		b.changed |= 1 << i
		b.dirty = true
	}
}

// state returns what all nodes in memory have; nil for other nodes.
func state(n node) *written {
	switch n := n.(type) {
	case *leaf:
		return &n.written
	case *extension:
		return &n.written
	case *branch:
		return &n.written
	}
	return nil
}

// size estimates the memory of a node, in bytes.
func size(n node) int {
	const pointers, branchPointers = 200, 360
	switch n := n.(type) {
	case *leaf:
		return pointers + len(n.rlp) + len(n.key) + len(n.value)
	case *extension:
		return pointers + len(n.rlp) + len(n.key)
	case *branch:
		return branchPointers + len(n.rlp)
	}
	return 0
}
