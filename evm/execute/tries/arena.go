package tries

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// arena is memory for the nodes of tries that are given up together. All methods work without one,
// with memory of its own for each node.
//
// The nodes of a simulation live for milliseconds. They were a quarter of the bytes that it left to
// the collector.
type arena struct {
	bytes    []byte   // the rest of a chunk
	branches []branch // the same
	leaves   []leaf   // the same

	first struct { // chunks that are used again with the arena
		bytes    []byte
		branches []branch
		leaves   []leaf
	}
}

// The sizes of the first chunks, enough for most simulations of two blocks with two calls, and of
// later ones.
const (
	firstBytes, laterBytes = 96 << 10, 16 << 10
	firstNodes, laterNodes = 96, 16
)

var arenas = sync.Pool{New: func() any {
	a := new(arena)
	a.first.bytes, a.first.branches, a.first.leaves = make([]byte, firstBytes), make([]branch, firstNodes), make([]leaf, firstNodes)
	return a
}}

func newArena() *arena {
	a := arenas.Get().(*arena)
	a.bytes, a.branches, a.leaves = a.first.bytes, a.first.branches, a.first.leaves
	return a
}

// release ends the use of all nodes in the arena.
func (a *arena) release() {
	clear(a.first.branches)
	clear(a.first.leaves)
	a.bytes, a.branches, a.leaves = nil, nil, nil
	arenas.Put(a)
}

// room returns an empty slice with a capacity.
func (a *arena) room(size int) []byte {
	if a == nil || size > laterBytes {
		return make([]byte, 0, size)
	}
	if size > len(a.bytes) {
		a.bytes = make([]byte, laterBytes)
	}
	taken := a.bytes[:0:size]
	a.bytes = a.bytes[size:]
	return taken
}

func (a *arena) clone(b []byte) []byte { return append(a.room(len(b)), b...) }

func (a *arena) branch(encoded []byte) *branch {
	if a == nil {
		return &branch{written: written{rlp: encoded}}
	}
	if len(a.branches) == 0 {
		a.branches = make([]branch, laterNodes)
	}
	b := &a.branches[0]
	a.branches = a.branches[1:]
	b.rlp = encoded
	return b
}

// leaf returns a leaf, with the encoding and the hash that it has, if it has them.
func (a *arena) leaf(key, value, encoded []byte, hash common.Hash) *leaf {
	l := a.emptyLeaf()
	*l = leaf{written: written{rlp: encoded, hash: hash}, key: a.clone(key), value: value}
	return l
}

func (a *arena) emptyLeaf() *leaf {
	if a == nil {
		return new(leaf)
	}
	if len(a.leaves) == 0 {
		a.leaves = make([]leaf, laterNodes)
	}
	l := &a.leaves[0]
	a.leaves = a.leaves[1:]
	return l
}
