package file

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// maxEra1Blocks is how many blocks an era1 file has at most, and the limit of
// the list that its accumulator is the root of.
const maxEra1Blocks = 8192

// accumulator is the SSZ root of a list of header records, each of which is a
// block's hash and the chain's total difficulty up to it. The zero value is that
// of the empty list.
type accumulator struct {
	leaves [][32]byte
}

// add appends a record. No more than maxEra1Blocks may be added.
func (a *accumulator) add(hash common.Hash, totalDifficulty *uint256.Int) {
	var record [64]byte
	copy(record[:], hash[:])
	for i, limb := range totalDifficulty {
		binary.LittleEndian.PutUint64(record[32+8*i:], limb)
	}
	a.leaves = append(a.leaves, sha256.Sum256(record[:]))
}

// root merkleizes the list to the depth that its limit gives, and mixes its
// length in.
func (a *accumulator) root() common.Hash {
	level := append([][32]byte(nil), a.leaves...)
	var padding [32]byte // the root of an empty subtree as high as the level
	for range bits.Len(maxEra1Blocks - 1) {
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
