package era

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// check goes through a file. When it fails, offset is where.
type check struct {
	store  *e2store
	offset int64
	format Format
	blocks []block

	accumulator     accumulator // of the blocks before the merge
	root            common.Hash // of the accumulator, once it is checked
	parent          common.Hash
	totalDifficulty uint256.Int // of the chain up to the last block
	unchecked       int         // proofs
	buf             bytes.Buffer
}

func (c *check) run() error {
	entries, offset, err := c.store.entries()
	c.offset = offset
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("the file is empty; want a history file")
	}
	version, last := entries[0], entries[len(entries)-1]
	c.offset = version.offset
	if version.kind != kindVersion {
		return fmt.Errorf("begins with the %v; want the %v", version.kind, kindVersion)
	}
	if version.length != 0 {
		return fmt.Errorf("the %v has %d bytes; want none", version.kind, version.length)
	}
	switch last.kind {
	case kindBlockIndex:
		return c.era1(entries[1:])
	case kindDynamicIndex:
		c.format = ERE
		return c.ere(entries[1:])
	}
	c.offset = last.end()
	return fmt.Errorf("the file ends with the %v; want the %v of era1 or the %v of ERE", last.kind, kindBlockIndex, kindDynamicIndex)
}

// header decodes a header and checks that it follows the one before.
func (c *check) header(e entry) (*types.Header, common.Hash, error) {
	c.offset = e.offset
	if len(c.blocks) == MaxBlocks {
		return nil, common.Hash{}, fmt.Errorf("one block more than %d, the limit of a history file", MaxBlocks)
	}
	if err := c.store.unzip(&c.buf, e, maxHeaderSize); err != nil {
		return nil, common.Hash{}, err
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(c.buf.Bytes(), header); err != nil {
		return nil, common.Hash{}, fmt.Errorf("not a block header: %w", err)
	}
	if !header.Number.IsUint64() {
		return nil, common.Hash{}, fmt.Errorf("a header's number has %d bits; want at most 64", header.Number.BitLen())
	}
	if header.Difficulty.BitLen() > 256 {
		return nil, common.Hash{}, fmt.Errorf("block %d has a difficulty of %d bits; want at most 256", header.Number, header.Difficulty.BitLen())
	}
	if n := len(c.blocks); n > 0 {
		before := c.blocks[n-1].header
		if want := before.Number.Uint64() + 1; header.Number.Uint64() != want {
			return nil, common.Hash{}, fmt.Errorf("found the header of block %d; want that of block %d", header.Number, want)
		}
		if header.ParentHash != c.parent {
			return nil, common.Hash{}, fmt.Errorf("block %d has the parent %s; the block before it is %s", header.Number, header.ParentHash, c.parent)
		}
		if before.Difficulty.Sign() == 0 && header.Difficulty.Sign() != 0 {
			return nil, common.Hash{}, fmt.Errorf("block %d has the difficulty %d, and the block before it none; want none after the merge", header.Number, header.Difficulty)
		}
	}
	c.parent = crypto.Keccak256Hash(c.buf.Bytes())
	return header, c.parent, nil
}

// addDifficulty checks a stored total difficulty against the headers, and adds a
// block before the merge to the accumulator. The total of a file's first block has no
// header to stand on, unless it is the genesis block: only the accumulator holds it.
func (c *check) addDifficulty(e entry, b *block, first bool) error {
	c.offset = e.offset
	stored, err := c.store.word(e)
	if err != nil {
		return err
	}
	number, own := b.header.Number, uint256.MustFromBig(b.header.Difficulty)
	total := fromLittleEndian(stored)
	if !first || number.Sign() == 0 {
		want, overflow := new(uint256.Int).AddOverflow(&c.totalDifficulty, own)
		if overflow {
			return fmt.Errorf("the total difficulty of block %d exceeds 256 bits", number)
		}
		if total != *want {
			return fmt.Errorf("block %d has the total difficulty %s; the headers add up to %s", number, total.Dec(), want.Dec())
		}
	}
	c.totalDifficulty = total
	if !own.IsZero() {
		c.accumulator.add(b.hash, &total)
	}
	return nil
}

// checkAccumulator compares the accumulator with the headers.
func (c *check) checkAccumulator(e entry) error {
	c.offset = e.offset
	stored, err := c.store.word(e)
	if err != nil {
		return err
	}
	if c.root = c.accumulator.root(); c.root != stored {
		return fmt.Errorf("the accumulator is %#x; the headers give %s", stored, c.root)
	}
	return nil
}

// checkBounds compares the first block's number and the count of an index with the blocks.
func (c *check) checkBounds(first, count uint64) error {
	if want := c.blocks[0].header.Number.Uint64(); first != want {
		return fmt.Errorf("the block index begins with block %d; the first header is that of block %d", first, want)
	}
	if count != uint64(len(c.blocks)) {
		return fmt.Errorf("the block index counts %d blocks; there are %d", count, len(c.blocks))
	}
	return nil
}
