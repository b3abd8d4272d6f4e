package api_test

import (
	"encoding/json"
	"testing"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/core/types"
)

// A range up to the pending block begins with the safe and the finalized block of the moment, also
// if the pending block was built before these moved.
func TestPendingKnowsWhatIsSafe(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	first := o.mine()
	o.send(1)
	second := o.mine()
	o.send(2)
	logsFrom := func(tag string) int {
		t.Helper()
		var logs []json.RawMessage
		o.ask(t, &logs, "eth_getLogs", map[string]any{"fromBlock": tag, "toBlock": "pending"})
		return len(logs)
	}
	ref := func(b *types.Block) chain.Ref { return chain.Ref{Number: b.NumberU64(), Hash: b.Hash()} }
	o.members("eth_getBlockByNumber", "pending", false) // builds the block
	for _, test := range []struct {
		safe, finalized         *types.Block
		fromSafe, fromFinalized int
	}{{first, first, 3, 3}, {second, first, 2, 3}, {second, second, 2, 2}} {
		if err := o.follower.SetHead(t.Context(), second.Hash(), ref(test.safe), ref(test.finalized)); err != nil {
			t.Fatal(err)
		}
		if safe, finalized := logsFrom("safe"), logsFrom("finalized"); safe != test.fromSafe || finalized != test.fromFinalized {
			t.Errorf("safe is %d and finalized %d: %d logs from safe to pending and %d from finalized, expected %d and %d",
				test.safe.NumberU64(), test.finalized.NumberU64(), safe, finalized, test.fromSafe, test.fromFinalized)
		}
	}
}
