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

// TestTracesOfTransactions traces every transaction by itself, from the first on, from
// the last on and in turns, and expects what a trace of the encoded block gives: that runs
// all transactions in order. A trace of one takes the state before it from the stored
// access list of a block of Amsterdam, and from earlier traces of any other block.
func TestTracesOfTransactions(t *testing.T) {
	configs := []string{
		`{"tracer":"callTracer","tracerConfig":{"withLog":true}}`,
		`{"tracer":"prestateTracer"}`,
		`{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}`,
		`{"tracer":"flatCallTracer"}`,
		`{"tracer":"4byteTracer"}`,
		`{"enableMemory":true,"enableReturnData":true}`,
	}
	for name, place := range map[string]func(i, n int) int{
		"first to last": func(i, _ int) int { return i },
		"last to first": func(i, n int) int { return n - 1 - i },
		"in turns":      func(i, n int) int { return i * 5 % n },
	} {
		t.Run(name, func(t *testing.T) {
			s, blocks := crossing(t)
			for _, config := range configs {
				for _, block := range blocks[1:8] {
					encoded, err := rlp.EncodeToBytes(block)
					if err != nil {
						t.Fatal(err)
					}
					var inOrder []struct{ Result json.RawMessage }
					s.ask(t, &inOrder, "debug_traceBlock", hexutil.Bytes(encoded), json.RawMessage(config))
					for n := range block.Transactions() {
						i := place(n, len(inOrder))
						var alone json.RawMessage
						s.ask(t, &alone, "debug_traceTransaction", block.Transactions()[i].Hash(), json.RawMessage(config))
						sameJSON(t, fmt.Sprintf("block %d, transaction %d, %s", block.NumberU64(), i, config), alone, inOrder[i].Result)
					}
				}
			}
		})
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
