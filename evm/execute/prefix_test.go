package execute

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestPrefixCacheIsBounded fills the cache beyond its size, and replaces prefixes by
// longer and shorter ones.
func TestPrefixCacheIsBounded(t *testing.T) {
	c := newPrefixCache()
	const room = prefixBytes / changeBytes
	block := func(i int) common.Hash { return common.Hash{1, byte(i >> 8), byte(i)} }
	for i := range 10 {
		c.put(block(i), prefix{length: 3, changes: room / 4})
	}
	if n := c.blocks.Len(); n != 4 || c.changes > room {
		t.Errorf("%d blocks with %d changes, want 4 with at most %d", n, c.changes, room)
	}
	if c.find(block(9)).length != 3 || c.find(block(0)).length != 0 {
		t.Error("the oldest blocks are not those that were evicted")
	}
	c.put(block(9), prefix{length: 2, changes: 1})
	c.put(block(9), prefix{length: 5, changes: room / 8})
	if got := c.find(block(9)); got.length != 5 || c.changes != room/4*3+room/8 {
		t.Errorf("a prefix of %d transactions, %d changes in all, want 5 and %d", got.length, c.changes, room/4*3+room/8)
	}
	c.put(block(20), prefix{length: 1, changes: room + 1})
	if c.find(block(20)).length != 0 || c.blocks.Len() != 4 {
		t.Errorf("a prefix above the size of the cache was added, or evicted others; %d blocks", c.blocks.Len())
	}
	for i := range 2 * prefixBlocks {
		c.put(block(i), prefix{length: 1})
	}
	if n := c.blocks.Len(); n > prefixBlocks {
		t.Errorf("%d blocks, want at most %d", n, prefixBlocks)
	}
}
