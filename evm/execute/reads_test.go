package execute

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestReadCacheIsBounded reads more than the cache holds: of one state, of several, and of
// more states than it holds.
func TestReadCacheIsBounded(t *testing.T) {
	c := newReadCache()
	root := func(i int) common.Hash { return common.Hash{1, byte(i >> 8), byte(i)} }
	read := func(state, slots int) *stateReads {
		reads := c.of(root(state))
		for i := range slots {
			reads.addSlot(warmSlot{slot: common.Hash{byte(i >> 16), byte(i >> 8), byte(i)}}, common.Hash{1})
		}
		c.added(root(state), reads)
		return reads
	}
	if n := read(0, 2*maxStateReads).length(); n != maxStateReads {
		t.Errorf("%d reads of one state, want %d", n, maxStateReads)
	}
	for i := range 10 {
		read(i, maxStateReads)
	}
	if n := c.states.Len(); n != maxCachedReads/maxStateReads || c.count != maxCachedReads {
		t.Errorf("%d states with %d reads, want %d with %d", n, c.count, maxCachedReads/maxStateReads, maxCachedReads)
	}
	if _, ok := c.of(root(9)).slot(warmSlot{}); !ok {
		t.Error("the newest state was evicted")
	}
	if _, ok := c.of(root(0)).slot(warmSlot{}); ok {
		t.Error("the oldest state was not evicted")
	}
	// A replay that goes on after its state has been evicted.
	evicted := c.of(root(100))
	for i := range 2 * readStates {
		read(i, 1)
	}
	if n := c.states.Len(); n > readStates {
		t.Errorf("%d states, want at most %d", n, readStates)
	}
	evicted.addAccount(common.Address{1}, types.NewEmptyStateAccount())
	c.added(root(100), evicted)
	if c.count != c.states.Len() {
		t.Errorf("%d reads are counted, want %d", c.count, c.states.Len())
	}
}
