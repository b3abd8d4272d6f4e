package era

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	// proofOfAccumulator is the type of the proof that a block before the merge is in
	// the accumulator. Proofs of the other types lead to roots of the beacon chain.
	proofOfAccumulator = 0
	lastProofType      = 4
	// maxProofSize bounds a proof. The longest is less than 1 KiB.
	maxProofSize = 1 << 16
)

// proofs checks the proofs, one for each block.
func (c *check) proofs(entries []entry) error {
	for i, e := range entries {
		c.offset = e.offset
		if err := c.proof(e, i); err != nil {
			return fmt.Errorf("block %d: %w", c.blocks[i].header.Number, err)
		}
	}
	return nil
}

func (c *check) proof(e entry, i int) error {
	if err := c.store.unzip(&c.buf, e, maxProofSize); err != nil {
		return err
	}
	var proof struct {
		Type uint64
		Data []byte
	}
	if err := rlp.DecodeBytes(c.buf.Bytes(), &proof); err != nil {
		return fmt.Errorf("not a proof: %w", err)
	}
	if proof.Type > lastProofType {
		return fmt.Errorf("the proof has the type %d; want 0 to %d", proof.Type, lastProofType)
	}
	beforeMerge := c.blocks[i].header.Difficulty.Sign() != 0
	if beforeMerge != (proof.Type == proofOfAccumulator) {
		return fmt.Errorf("the proof has the type %d; want 0 before the merge and no other, and a higher one after it", proof.Type)
	}
	if !beforeMerge {
		c.unchecked++
		return nil
	}
	return c.accumulatorProof(proof.Data, i)
}

// accumulatorProof checks that a proof leads from a block's hash to the accumulator:
// its siblings are the total difficulty, those up the tree, and the list's length.
func (c *check) accumulatorProof(data []byte, i int) error {
	if want := (accumulatorDepth + 2) * common.HashLength; len(data) != want {
		return fmt.Errorf("the proof has %d bytes; want %d", len(data), want)
	}
	if c.root == (common.Hash{}) {
		return errors.New("the proof leads to an accumulator; the file has none")
	}
	node := [32]byte(c.blocks[i].hash)
	place := i << 1 // in the tree, with the two fields of a record below its leaf
	for level := range accumulatorDepth + 2 {
		sibling := [32]byte(data[level*common.HashLength:])
		if place>>level&1 == 0 {
			node = hashPair(node, sibling)
		} else {
			node = hashPair(sibling, node)
		}
	}
	if node != c.root {
		return fmt.Errorf("the proof leads to %#x; the accumulator is %s", node, c.root)
	}
	return nil
}
