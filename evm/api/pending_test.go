package api_test

import (
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
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

// TestPendingIsReused: the pending block is built once for a pool and a head, and at most 0.25 s after the pool has changed.
func TestPendingIsReused(t *testing.T) {
	o := serveOpen(t)
	synctest.Test(t, func(t *testing.T) {
		o := &open{service: o.service, t: t, chain: o.chain, follower: o.follower, sender: o.sender}
		view := func() *query.View {
			t.Helper()
			now, err := o.chain.View()
			if err != nil {
				t.Fatal(err)
			}
			pending, _, err := now.Resolve(t.Context(), chain.BlockID{Tag: chain.Pending})
			if err != nil {
				t.Fatal(err)
			}
			return pending
		}
		expect := func(what string, transactions int, timestamp uint64) {
			t.Helper()
			var got struct {
				Transactions []common.Hash
				Timestamp    hexutil.Uint64
			}
			if o.ask(t, &got, "eth_getBlockByNumber", "pending", false); len(got.Transactions) != transactions || uint64(got.Timestamp) != timestamp {
				t.Errorf("%s: %d transactions at %d, expected %d at %d", what, len(got.Transactions), got.Timestamp, transactions, timestamp)
			}
		}
		o.send(0)
		began := uint64(time.Now().Unix())
		expect("the first", 1, began)
		first := view()
		o.send(1)
		time.Sleep(250*time.Millisecond - 1)
		expect("just before it is too old", 1, began)
		if view() != first {
			t.Error("the block was built again before it was too old")
		}
		time.Sleep(time.Nanosecond)
		expect("when it is too old", 2, began)
		second := view()
		time.Sleep(time.Hour)
		if view() != second || second == first {
			t.Error("the block was built again although the pool and the head are the same, or not after the pool had changed")
		}
		o.send(2)
		expect("an hour later", 3, began+3600)
	})
}

// TestPendingOnANewHead: the pending block extends the head of the moment, however short ago it was built. It is later than the head
// if that is ahead of the clock.
func TestPendingOnANewHead(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	for _, ahead := range []uint64{0, 1 << 20} {
		now := uint64(time.Now().Unix())
		head, _, err := o.follower.Build(t.Context(), func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
			return execute.Attributes{Timestamp: max(parent.Time+12, now+ahead), GasLimit: parent.GasLimit}, nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			ParentHash common.Hash
			Timestamp  hexutil.Uint64
		}
		if o.ask(t, &got, "eth_getBlockByNumber", "pending", false); got.ParentHash != head.Hash() || uint64(got.Timestamp) <= head.Time() {
			t.Errorf("on the head %s of %d: the pending block follows %s and is of %d", head.Hash(), head.Time(), got.ParentHash, got.Timestamp)
		}
		if ahead > 0 && uint64(got.Timestamp) != head.Time()+1 {
			t.Errorf("on a head of %d: the pending block is of %d, expected a second later", head.Time(), got.Timestamp)
		}
	}
}

// TestPendingWithoutAPool: a network that takes no transactions has the head in place of a pending block.
func TestPendingWithoutAPool(t *testing.T) {
	made, _ := newFollower(t, ingest.DefaultDepths())
	view, err := made.View()
	if err != nil {
		t.Fatal(err)
	}
	if pending, number, err := view.Resolve(t.Context(), chain.BlockID{Tag: chain.Pending}); err != nil || pending != view || number != view.Head().Number {
		t.Errorf("block %d of %v, %v, expected the head", number, pending, err)
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
