package api_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// TestTracesFromAccessLists traces every transaction of Amsterdam by itself, on the state
// that the stored access list tells, and expects what a trace of the encoded block gives,
// which has no stored list and runs all transactions in order.
func TestTracesFromAccessLists(t *testing.T) {
	s, blocks := crossing(t)
	for _, config := range []string{
		`{"tracer":"callTracer","tracerConfig":{"withLog":true}}`,
		`{"tracer":"prestateTracer"}`,
		`{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}`,
		`{"tracer":"flatCallTracer"}`,
		`{"tracer":"4byteTracer"}`,
		`{"tracer":"{logs: [], step: function() {}, fault: function() {}, result: function(ctx, db) { return [ctx.gasUsed, ctx.output, db.getBalance(ctx.from), db.getNonce(ctx.from)] }}"}`,
		`{"enableMemory":true,"enableReturnData":true}`,
	} {
		for _, block := range blocks[ingesttest.CrossingFork-1:] {
			encoded, err := rlp.EncodeToBytes(block)
			if err != nil {
				t.Fatal(err)
			}
			var inOrder []struct{ Result json.RawMessage }
			s.ask(t, &inOrder, "debug_traceBlock", hexutil.Bytes(encoded), json.RawMessage(config))
			for i, tx := range block.Transactions() {
				var alone json.RawMessage
				s.ask(t, &alone, "debug_traceTransaction", tx.Hash(), json.RawMessage(config))
				sameJSON(t, fmt.Sprintf("block %d, transaction %d, %s", block.NumberU64(), i, config), alone, inOrder[i].Result)
			}
		}
	}
}

// TestCallBetweenTransactions runs a call before each transaction of a block, on the
// state that the access list tells, and reads the slot that transactions 2 and 3 write.
func TestCallBetweenTransactions(t *testing.T) {
	s, blocks := crossing(t)
	block := blocks[len(blocks)-1]
	slotBefore := func(i int) string {
		var diff map[string]struct{ Storage map[string]string }
		call := map[string]any{"to": ingesttest.StoreContract, "data": hexutil.Encode(append(slotOne(), make([]byte, 32)...))}
		config := map[string]any{"tracer": "prestateTracer", "txIndex": hexutil.Uint64(i)}
		s.ask(t, &diff, "debug_traceCall", call, hexutil.EncodeUint64(block.NumberU64()), config)
		for _, account := range diff {
			for slot, value := range account.Storage {
				if slot == hexutil.Encode(slotOne()) {
					return value
				}
			}
		}
		return ""
	}
	written := func(tx *types.Transaction) string { return hexutil.Encode(tx.Data()[32:]) }
	transactions := block.Transactions()
	for i, want := range map[int]string{3: written(transactions[2]), 4: written(transactions[3]), len(transactions) - 1: written(transactions[3])} {
		if got := slotBefore(i); got != want {
			t.Errorf("before transaction %d the slot is %s, want %s", i, got, want)
		}
	}
}

// slotOne is the slot that the transactions of a crossing block write twice.
func slotOne() []byte { return append(make([]byte, 31), 1) }

func sameJSON(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	a, err := jsondiff.Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := jsondiff.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	if differences := jsondiff.Values(b, a); len(differences) > 0 {
		t.Errorf("%s: %v", what, differences)
	}
}
