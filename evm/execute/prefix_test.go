package execute

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestPrefixCacheIsBounded fills the cache beyond its size, and replaces prefixes by
// longer and shorter ones.
func TestPrefixCacheIsBounded(t *testing.T) {
	c := newPrefixCache()
	of := func(length, bytes int) prefix {
		return prefix{length, [][]byte{make([]byte, bytes/2), make([]byte, bytes-bytes/2-prefixOverhead)}}
	}
	block := func(i int) common.Hash { return common.Hash{1, byte(i >> 16), byte(i >> 8), byte(i)} }
	for i := range 10 {
		c.put(block(i), of(3, prefixBytes/4))
	}
	if n := c.blocks.Len(); n != 4 || c.bytes != prefixBytes {
		t.Errorf("%d blocks with %d bytes, want 4 with %d", n, c.bytes, prefixBytes)
	}
	if c.find(block(9)).length != 3 || c.find(block(0)).length != 0 {
		t.Error("the oldest blocks are not those that were evicted")
	}
	c.put(block(9), of(2, 4*prefixOverhead))
	c.put(block(9), of(5, prefixBytes/8))
	if got := c.find(block(9)); got.length != 5 || c.bytes != prefixBytes/4*3+prefixBytes/8 {
		t.Errorf("a prefix of %d transactions, %d bytes in all, want 5 and %d", got.length, c.bytes, prefixBytes/4*3+prefixBytes/8)
	}
	c.put(block(20), of(1, prefixBytes+2))
	if c.find(block(20)).length != 0 || c.blocks.Len() != 4 {
		t.Errorf("a prefix above the size of the cache was added, or evicted others; %d blocks", c.blocks.Len())
	}
	const most = prefixBytes / prefixOverhead
	for i := range 2 * most {
		c.put(block(i), prefix{length: 10})
	}
	if n := c.blocks.Len(); n != most || c.bytes != most*prefixOverhead {
		t.Errorf("%d blocks with %d bytes, want %d with %d", n, c.bytes, most, most*prefixOverhead)
	}
}
