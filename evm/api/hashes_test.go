package api

import (
	"testing"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
)

// A cache of many small blocks is not larger than it is meant to be.
func TestHashesOfSmallBlocks(t *testing.T) {
	cache := newHashCache()
	if hashes, err := cache.of(common.Hash{1}, new(archive.Body)); len(hashes) != 0 || err != nil {
		t.Errorf("hashes of an empty block: %x, %v", hashes, err)
	}
	if size := cache.blocks.Size(); size != 0 {
		t.Errorf("an empty block takes %d bytes, want none", size)
	}
	cache.blocks.Add(common.Hash{2}, make(transactionHashes, common.HashLength))
	if size := cache.blocks.Size(); size != cachedBlockBytes+common.HashLength {
		t.Errorf("a block of one transaction counts as %d bytes, want %d with its entry", size, cachedBlockBytes+common.HashLength)
	}
}
