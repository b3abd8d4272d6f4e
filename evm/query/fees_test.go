package query

import (
	"testing"

	"ashlar/chain"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/params"
)

// TestLongestFeeHistoryStaysCached: after a request for the longest history, the tips of all its
// blocks are cached.
func TestLongestFeeHistoryStaysCached(t *testing.T) {
	const blocks = maxFeeBlocks + 10
	c := newLogChain(t, 7, blocks)
	var err error
	if c.chain.executor, err = execute.New(params.MainnetChainConfig); err != nil { // whose first blocks have no base fee either
		t.Fatal(err)
	}
	if _, err := c.FeeHistory(t.Context(), maxFeeBlocks, chain.BlockID{Tag: chain.Latest}, []float64{50}); err != nil {
		t.Fatal(err)
	}
	missing := 0
	for number := uint64(blocks - maxFeeBlocks); number < blocks; number++ {
		hash, err := c.BlockHash(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if !c.chain.tips.Contains(hash) {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("the tips of %d of %d blocks are not cached", missing, maxFeeBlocks)
	}
}
