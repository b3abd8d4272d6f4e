package api_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
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

// A filter that is installed before the service follows the pool gets the transactions that
// come meanwhile.
func TestPendingBeforeRun(t *testing.T) {
	o := serveOpen(t)
	a := api.New(o.chain, api.Config{})
	served := serveAPI(a)
	var filter string
	served.ask(t, &filter, "eth_newPendingTransactionFilter")
	sent := o.send(0)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var got []common.Hash
	await.Until(t, "the transaction", func() bool {
		served.ask(t, &got, "eth_getFilterChanges", filter)
		return len(got) > 0
	})
	if !slices.Equal(got, []common.Hash{sent}) {
		t.Errorf("the filter has %x, expected %x", got, sent)
	}
}
