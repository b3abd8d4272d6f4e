package archive

import (
	"testing"

	"ashlar/evm"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// TestChangesNeedTheState: once a window has moved past a block, its changes are not read, although their row is removed later.
// The values that the row leaves out are gone, and other nodes may still have the state before the block.
func TestChangesNeedTheState(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	a, err := Create(t.Context(), store, testGenesis(), TraceIndex)
	if err != nil {
		t.Fatal(err)
	}
	const first = 5 // block with state
	batch := store.NewBatch()
	for number := uint64(first - 1); number <= first+1; number++ {
		changed := evm.KeyChanges[common.Hash]{Values: []evm.Step[common.Hash]{{Step: 1, Value: common.Hash{1}}}}
		changes := &evm.Changes{Transactions: 1, Slots: []evm.SlotChanges{{KeyChanges: changed}}}
		a.PutTraces(batch, number, &evm.Traces{Changes: changes})
	}
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	check := func(number uint64, want bool) {
		t.Helper()
		changes, err := a.Changes(t.Context(), number)
		if (changes != nil) != want || err != nil {
			t.Errorf("block %d of those from %s on: changes %v, %v, expected them: %t", number, a.Extent(), changes != nil, err, want)
		}
	}
	for number := uint64(first - 1); number <= first+1; number++ {
		check(number, true)
	}
	a.extent.Store(&Extent{Blocks: 1, State: first, Tries: first})
	check(first-1, false)
	check(first, false) // the state before it is gone
	check(first+1, true)
}
