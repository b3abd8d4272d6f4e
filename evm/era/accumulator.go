package era

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// accumulatorDepth is the height of the tree over the records of an accumulator.
var accumulatorDepth = bits.Len(MaxBlocks - 1)

// accumulator is the SSZ root of a list of header records, each of which is a
// block's hash and the chain's total difficulty up to it. The zero value is that
// of the empty list.
type accumulator struct {
	leaves [][32]byte
}

// add appends a record. No more than MaxBlocks may be added.
func (a *accumulator) add(hash common.Hash, totalDifficulty *uint256.Int) {
	a.leaves = append(a.leaves, hashPair(hash, littleEndian(totalDifficulty)))
}

// root merkleizes the list to the depth that its limit gives, and mixes its
// length in.
func (a *accumulator) root() common.Hash {
	level := append([][32]byte(nil), a.leaves...)
	var padding [32]byte // the root of an empty subtree as high as the level
	for range accumulatorDepth {
		if len(level)%2 == 1 {
			level = append(level, padding)
		}
		for i := range len(level) / 2 {
			level[i] = hashPair(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
		padding = hashPair(padding, padding)
	}
	root := padding
	if len(level) == 1 {
		root = level[0]
	}
	var length [32]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(a.leaves)))
	return hashPair(root, length)
}

func hashPair(left, right [32]byte) [32]byte {
	var both [64]byte
	copy(both[:32], left[:])
	copy(both[32:], right[:])
	return sha256.Sum256(both[:])
}

// littleEndian is a number as SSZ and history files have it.
func littleEndian(n *uint256.Int) (word [32]byte) {
	for i, limb := range n {
		binary.LittleEndian.PutUint64(word[8*i:], limb)
	}
	return word
}

// fromLittleEndian is the reverse of littleEndian.
func fromLittleEndian(word [32]byte) (n uint256.Int) {
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(word[8*i:])
	}
	return n
}
