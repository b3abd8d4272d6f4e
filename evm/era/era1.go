package era

import (
	"errors"
	"fmt"
)

// era1 checks the entries of an era1 file that follow its version.
func (c *check) era1(entries []entry) error {
	for len(entries) > 0 {
		c.offset = entries[0].offset
		switch e := entries[0]; e.kind {
		case kindHeader:
			if err := c.era1Block(entries); err != nil {
				return err
			}
			entries = entries[4:]
		case kindAccumulator:
			return c.era1End(entries)
		case kindBody, kindReceipts, kindTotalDifficulty, kindBlockIndex, kindVersion:
			return fmt.Errorf("found the %v; want the %v of a block, or the %v", e.kind, kindHeader, kindAccumulator)
		default: // other entries are allowed, and mean nothing here
			entries = entries[1:]
		}
	}
	return fmt.Errorf("the file ends; want the %v", kindAccumulator)
}

// era1Block checks the four entries of a block, which come first.
func (c *check) era1Block(entries []entry) error {
	header, hash, err := c.header(entries[0])
	if err != nil {
		return err
	}
	for i, want := range []kind{kindHeader, kindBody, kindReceipts, kindTotalDifficulty} {
		// There is an entry more: the last of a file is its index.
		if c.offset = entries[i].offset; entries[i].kind != want {
			return fmt.Errorf("block %d: found the %v; want the %v", header.Number, entries[i].kind, want)
		}
	}
	b := block{header: header, hash: hash, start: entries[0].offset, body: entries[1], receipts: entries[2]}
	if header.Difficulty.Sign() == 0 {
		c.offset = entries[0].offset
		return fmt.Errorf("block %d has no difficulty; want blocks before the merge, as era1 holds no others", header.Number)
	}
	if err := c.addDifficulty(entries[3], &b, len(c.blocks) == 0); err != nil {
		return err
	}
	c.blocks = append(c.blocks, b)
	return nil
}

// era1End checks what follows the blocks: the accumulator, the index and nothing else.
func (c *check) era1End(entries []entry) error {
	if len(c.blocks) == 0 {
		return errors.New("the file has no blocks; want at least one before the accumulator")
	}
	if err := c.checkAccumulator(entries[0]); err != nil {
		return err
	}
	index := entries[1] // the last of a file is its index
	c.offset = index.offset
	if index.kind != kindBlockIndex {
		return fmt.Errorf("found the %v after the accumulator; want the %v", index.kind, kindBlockIndex)
	}
	numbers, err := c.store.numbers(index)
	if err != nil {
		return err
	}
	if err := c.era1Index(index, numbers); err != nil {
		return err
	}
	if len(entries) > 2 {
		c.offset = entries[2].offset
		return fmt.Errorf("found the %v after the block index; want the end of the file", entries[2].kind)
	}
	return nil
}

// era1Index checks the block index: the first block's number, the offset of each
// block from the index's own, and their count.
func (c *check) era1Index(e entry, numbers []uint64) error {
	n := len(c.blocks)
	if len(numbers) != n+2 {
		return fmt.Errorf("the block index has %d bytes; want %d for %d blocks", e.length, 8*(n+2), n)
	}
	if err := c.checkBounds(numbers[0], numbers[1+n]); err != nil {
		return err
	}
	for i, b := range c.blocks {
		if got, want := int64(numbers[1+i]), b.start-e.offset; got != want {
			return fmt.Errorf("the block index has block %d at %d from itself; it is at %d", b.header.Number, got, want)
		}
	}
	return nil
}
