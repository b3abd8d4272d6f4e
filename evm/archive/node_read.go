package archive

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"ashlar/kv"
)

// NewestNode appends the newest version at or below block at of the node whose partition in
// trie_nodes is key, and returns the block that wrote it, or kv.ErrNotFound. A difference
// is combined with the rows below it, and returned in the form of a row with the whole
// node.
func NewestNode(ctx context.Context, store kv.Reader, key []byte, at uint64, dst []byte) (value []byte, since uint64, err error) {
	v := nodeVersions.Get().(*nodeVersion)
	defer v.giveBack()
	v.reset(dst)
	if err := store.Descend(ctx, trieNodes, key, at, v.take); err != nil {
		return dst, 0, err
	}
	switch {
	case v.rows == 0:
		return dst, 0, kv.ErrNotFound
	case v.steps > 0:
		return dst, 0, fmt.Errorf("%w: trie_nodes row of block %d at %x: a difference with %d rows missing below it", ErrCorrupt, v.since, key, v.steps)
	}
	return v.value, v.since, nil
}

// nodeVersion assembles the newest version of a node from its rows, newest first. It is
// pooled, because nearly every node of a proof needs one.
type nodeVersion struct {
	take  func(sort uint64, row []byte) (enough bool, err error) // the method value add, created once
	value []byte
	since uint64
	rows  int // rows read
	steps int // rows still needed

	// Of a difference: the known children, the newest version of each. They refer to
	// copies, since a row is valid only during the callback.
	children branch
	known    uint16
	copied   int
	copies   [branchChildren * childBytes]byte
}

var nodeVersions = sync.Pool{New: func() any {
	v := new(nodeVersion)
	v.take = v.add
	return v
}}

func (v *nodeVersion) reset(dst []byte) {
	v.value, v.since, v.rows, v.steps, v.known, v.copied = dst, 0, 0, 0, 0, 0
}

// giveBack returns v to the pool without the memory it was given.
func (v *nodeVersion) giveBack() {
	v.value = nil
	nodeVersions.Put(v)
}

// add processes the next row.
func (v *nodeVersion) add(sort uint64, row []byte) (enough bool, err error) {
	first := v.rows == 0
	if first {
		v.since = sort
	}
	v.rows++
	if len(row) == 0 || row[0] != nodeDifference {
		if first && len(row) > 0 && row[0] == nodeBase {
			v.value = append(append(v.value, nodeWhole), row[1:]...)
			return true, nil
		}
		if first {
			v.value = append(v.value, row...)
			return true, nil
		}
		return true, v.end(sort, row)
	}
	return false, v.addDifference(sort, row, first)
}

// addDifference adds the children of a difference that are not known.
func (v *nodeVersion) addDifference(sort uint64, row []byte, first bool) error {
	steps, changed, items, ok := differenceHead(row)
	for left := changed; left != 0 && ok; left &= left - 1 {
		var child []byte
		if child, items, ok = splitChild(items); !ok {
			break
		}
		if i := bits.TrailingZeros16(left); v.known&(1<<i) == 0 {
			to := v.copies[v.copied:][:len(child)]
			v.copied += copy(to, child)
			v.children[i] = to
		}
	}
	if !ok || len(items) > 0 {
		return invalidDifference(row)
	}
	if !first && steps != v.steps-1 {
		return v.broken(sort)
	}
	v.steps = steps
	v.known |= changed
	return nil
}

// end processes the whole branch below the differences.
func (v *nodeVersion) end(sort uint64, row []byte) error {
	if len(row) == 0 || row[0] != nodeBase && (row[0] != nodeWhole || v.steps != 1) {
		return v.broken(sort)
	}
	if v.endFull(row[1:]) {
		return nil
	}
	below, ok := splitBranch(row[1:])
	if !ok {
		return v.broken(sort)
	}
	for i := range below {
		if v.known&(1<<i) != 0 {
			below[i] = v.children[i]
		}
	}
	v.steps = 0
	room := slices.Grow(v.value, 1+maxListHead+below.size())
	v.value = below.appendTo(append(room, nodeWhole))
	return nil
}

// endFull processes the whole branch if all children are hashes, then and now, as those of most branches
// that are read are. Each has its place, so the branch is copied at once. It returns false for other branches.
func (v *nodeVersion) endFull(blob []byte) bool {
	if !isFull(blob) {
		return false
	}
	for left := v.known; left != 0; left &= left - 1 {
		if len(v.children[bits.TrailingZeros16(left)]) != childBytes {
			return false
		}
	}
	v.steps = 0
	v.value = append(append(slices.Grow(v.value, 1+fullBytes), nodeWhole), blob...)
	made := v.value[len(v.value)-fullBytes:]
	for left := v.known; left != 0; left &= left - 1 {
		i := bits.TrailingZeros16(left)
		copy(made[maxListHead+i*childBytes:], v.children[i])
	}
	return true
}

func (v *nodeVersion) broken(sort uint64) error {
	return fmt.Errorf("%w: trie_nodes row of block %d is a difference, but the row of block %d is not its base", ErrCorrupt, v.since, sort)
}
