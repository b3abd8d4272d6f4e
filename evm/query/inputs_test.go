package query

import (
	"testing"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
)

// TestInputCacheIsBounded adds more blocks than the cache holds, by their size and by their
// number.
func TestInputCacheIsBounded(t *testing.T) {
	c := newInputCache()
	block := func(i int) common.Hash { return common.Hash{1, byte(i >> 8), byte(i)} }
	input := func(bytes int) *storedInput {
		return &storedInput{header: &archive.Header{Size: uint64(bytes / 4)}}
	}
	for i := range 10 {
		c.add(block(i), input(inputBytes/4))
		c.add(block(i), input(inputBytes/4)) // again
	}
	if n := c.blocks.Len(); n != 3 || c.bytes > inputBytes {
		t.Errorf("%d blocks of %d bytes, want 3 of at most %d", n, c.bytes, inputBytes)
	}
	_, newest := c.find(block(9))
	if _, oldest := c.find(block(0)); !newest || oldest {
		t.Errorf("the newest block is held: %t, the oldest: %t", newest, oldest)
	}
	c.add(block(20), input(2*inputBytes))
	if _, found := c.find(block(20)); found || c.blocks.Len() != 3 {
		t.Error("a block larger than the cache was added, or evicted others")
	}
	for i := range 2 * inputBlocks {
		c.add(block(i), input(0))
	}
	if n := c.blocks.Len(); n > inputBlocks {
		t.Errorf("%d blocks, want at most %d", n, inputBlocks)
	}
}
