package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"

	"ashlar/evm"
	"ashlar/kv"
)

// WholeUntil returns the last block up to which the rows of trie nodes depend on how the
// state of a block is stored. Later rows depend on that state alone.
func WholeUntil(block uint64) uint64 { return (block/wholeEvery+1)*wholeEvery - 1 }

// NodeChain encodes the rows of a trie node again, in ascending order, as an archive writes
// them that has other rows below: which branches are whole depends on these.
//
//	rows of another archive   | whole    steps 1    steps 2    whole
//	rows below them, here     | steps 6
//	encoded again             |          steps 7    whole      steps 1
type NodeChain struct {
	key         []byte
	row         []byte    // the version before, in the form of a whole row; empty if there is none
	here, there storedRow // of that version, here and in the other archive
	next, out   []byte    // scratch
}

// storedRow is how a version of a branch is stored.
type storedRow struct {
	block uint64
	steps int
}

// StartNodeChain prepares to encode the rows of the node whose partition in trie_nodes is
// key, above those of a store up to block at.
func StartNodeChain(ctx context.Context, store kv.Reader, key []byte, at uint64) (*NodeChain, error) {
	c := &NodeChain{key: bytes.Clone(key), there: storedRow{block: at}}
	var err error
	c.row, c.here.block, err = NewestNode(ctx, store, key, at, nil)
	if errors.Is(err, kv.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.here.steps, err = storedSteps{ctx, State{history: &History{rows: store}, number: at}}.stepsOf(key)
	return c, err
}

// Next encodes the row of a block. The other archive begins with the state at which the chain
// starts, in whole rows. The result is valid until the next call.
func (c *NodeChain) Next(block uint64, row []byte) ([]byte, error) {
	version, there, err := c.apply(block, row)
	if err != nil {
		return nil, err
	}
	encoded, here := row, 0
	if len(version) > 0 && version[0] == nodeWhole {
		node := evm.Node{Blob: version[1:]}
		if len(c.row) > 0 && c.row[0] == nodeWhole && !c.apart(block, row, version) {
			node.Prev = c.row[1:]
		}
		if c.out, here, err = appendBranch(c.out[:0], c.key, block, node, fixedSteps(c.here.stepsFor(block))); err != nil {
			return nil, err
		}
		encoded = c.out
	}
	c.next, c.row = c.row, version
	c.here, c.there = storedRow{block, here}, storedRow{block, there}
	return encoded, nil
}

// apply returns the version of a row, in the form of a whole row, and its steps in the other
// archive.
func (c *NodeChain) apply(block uint64, row []byte) (version []byte, steps int, err error) {
	version = c.next[:0]
	if len(row) > 0 && row[0] == nodeBase {
		return append(append(version, nodeWhole), row[1:]...), 0, nil
	}
	if len(row) == 0 || row[0] != nodeDifference {
		return append(version, row...), 0, nil
	}
	d, err := decodeDifference(row)
	if err != nil {
		return nil, 0, err
	}
	if len(c.row) == 0 || c.row[0] != nodeWhole {
		return nil, 0, fmt.Errorf("%w: trie_nodes row of block %d is a difference, but the version before it is not a branch", ErrCorrupt, block)
	}
	all, ok := splitBranch(c.row[1:])
	if !ok {
		return nil, 0, fmt.Errorf("%w: trie_nodes row of block %d is a difference, but the version before it is not a branch", ErrCorrupt, block)
	}
	for left := d.changed; left != 0; left &= left - 1 {
		i := bits.TrailingZeros16(left)
		all[i] = d.children[i]
	}
	return all.appendTo(append(version, nodeWhole)), d.steps, nil
}

// apart reports whether the other archive stored a branch whole that it could have stored as
// a difference: its trie was created anew in that block, so it does not depend on the version
// before.
func (c *NodeChain) apart(block uint64, row, version []byte) bool {
	if row[0] == nodeDifference {
		return false
	}
	node := evm.Node{Blob: version[1:], Prev: c.row[1:]}
	_, steps, err := appendBranch(nil, c.key, block, node, fixedSteps(c.there.stepsFor(block)))
	return err == nil && steps > 0
}

// stepsFor returns the steps of the row for a block that may store a difference from it.
func (r storedRow) stepsFor(block uint64) int {
	if r.block/wholeEvery != block/wholeEvery {
		return maxSteps
	}
	return r.steps
}

// fixedSteps is the [nodeSteps] of a single known row.
type fixedSteps int

func (s fixedSteps) steps([]byte, uint64) (int, error) { return int(s), nil }
func (fixedSteps) wrote([]byte, uint64, int)           {}

// NodeSteps returns how many rows below a row of a trie node it is a difference from, at most;
// 0 if it is whole or a deletion. A whole row below it is the last of them.
func NodeSteps(row []byte) (int, error) {
	if len(row) == 0 || row[0] != nodeDifference {
		return 0, nil
	}
	d, err := decodeDifference(row)
	return d.steps, err
}

// WholeNode returns the row to put in the place of the newest one of a node at or below a
// block, so that it depends on none below. The node must exist.
func WholeNode(ctx context.Context, store kv.Reader, key []byte, at uint64) ([]byte, error) {
	row, _, err := NewestNode(ctx, store, key, at, nil)
	if err == nil {
		row[0] = nodeBase
	}
	return row, err
}
