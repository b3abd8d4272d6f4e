package era

import (
	"errors"
	"fmt"
)

// ere checks the entries of an ERE file that follow its version. It keeps no order
// among the kinds of entries, only within each: the index says where everything is.
func (c *check) ere(entries []entry) error {
	index := entries[len(entries)-1]
	byKind := make(map[kind][]entry)
	for i, e := range entries[:len(entries)-1] {
		c.offset = e.offset
		switch e.kind {
		case kindAccumulator:
			if i != len(entries)-2 {
				return fmt.Errorf("the %v is followed by the %v; want the %v", e.kind, entries[i+1].kind, kindDynamicIndex)
			}
		case kindVersion, kindReceipts, kindBlockIndex, kindDynamicIndex:
			return fmt.Errorf("found the %v; an ERE file has none there", e.kind)
		}
		byKind[e.kind] = append(byKind[e.kind], e)
	}
	c.offset = index.offset
	if err := c.ereHeaders(byKind); err != nil {
		return err
	}
	if err := c.ereTotals(byKind[kindTotalDifficulty], byKind[kindAccumulator]); err != nil {
		return err
	}
	if err := c.proofs(byKind[kindProof]); err != nil {
		return err
	}
	return c.ereIndex(index, byKind)
}

// ereHeaders checks the headers, and that there is as much of everything else.
func (c *check) ereHeaders(byKind map[kind][]entry) error {
	headers := byKind[kindHeader]
	if len(headers) == 0 {
		return errors.New("the file has no blocks; want at least one")
	}
	if n := len(byKind[kindBody]); n != len(headers) {
		return fmt.Errorf("the file has %d headers and %d bodies; want as many", len(headers), n)
	}
	for _, k := range []kind{kindSlimReceipts, kindProof, kindTotalDifficulty} {
		if n := len(byKind[k]); n != 0 && n != len(headers) {
			return fmt.Errorf("the file has %d headers and %d times the %v; want it for every block or for none", len(headers), n, k)
		}
	}
	for i, e := range headers {
		header, hash, err := c.header(e)
		if err != nil {
			return err
		}
		b := block{header: header, hash: hash, start: e.offset, body: byKind[kindBody][i]}
		if receipts := byKind[kindSlimReceipts]; len(receipts) > 0 {
			b.receipts = receipts[i]
		}
		c.blocks = append(c.blocks, b)
	}
	return nil
}

// ereTotals checks the total difficulties and the accumulator, which covers the
// blocks before the merge. A file may lack either.
func (c *check) ereTotals(totals, accumulator []entry) error {
	for i, e := range totals {
		if err := c.addDifficulty(e, &c.blocks[i], i == 0); err != nil {
			return err
		}
	}
	if len(accumulator) == 0 {
		return nil
	}
	c.offset = accumulator[0].offset
	if len(c.accumulator.leaves) == 0 {
		return fmt.Errorf("found the %v; want none in a file without total difficulties of blocks before the merge", kindAccumulator)
	}
	return c.checkAccumulator(accumulator[0])
}

// ereIndex checks the index:
//
//	first block | blocks × (offset of header, body, and of each other kind that there is) | kinds | blocks
//
// Offsets count from the index's own entry. Which kind an offset in a block's record is
// of is known by where that of the first block leads.
func (c *check) ereIndex(index entry, byKind map[kind][]entry) error {
	c.offset = index.offset
	numbers, err := c.store.numbers(index)
	if err != nil {
		return err
	}
	kinds := 0
	places := make(map[int64]kind) // of the first block
	for _, k := range []kind{kindHeader, kindBody, kindSlimReceipts, kindTotalDifficulty, kindProof} {
		if entries := byKind[k]; len(entries) > 0 {
			kinds++
			places[entries[0].offset-index.offset] = k
		}
	}
	n := len(c.blocks)
	if want := n*kinds + 3; len(numbers) != want {
		return fmt.Errorf("the block index has %d bytes; want %d for %d blocks with %d entries each", index.length, 8*want, n, kinds)
	}
	if got := numbers[len(numbers)-2]; got != uint64(kinds) {
		return fmt.Errorf("the block index says %d entries for each block; there are %d", got, kinds)
	}
	if err := c.checkBounds(numbers[0], numbers[len(numbers)-1]); err != nil {
		return err
	}
	for slot := range kinds {
		at := int64(numbers[1+slot])
		k, ok := places[at]
		if !ok {
			return fmt.Errorf("the block index has block %d at %d from itself; no entry of that block is there", c.blocks[0].header.Number, at)
		}
		delete(places, at) // each kind once
		for i, e := range byKind[k] {
			if got, want := int64(numbers[1+i*kinds+slot]), e.offset-index.offset; got != want {
				return fmt.Errorf("the block index has the %v of block %d at %d from itself; it is at %d", k, c.blocks[i].header.Number, got, want)
			}
		}
	}
	return nil
}
