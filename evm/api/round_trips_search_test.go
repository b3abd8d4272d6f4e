package api_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRoundTripsOfSearches counts the waits of trace_filter over several blocks when nothing is cached: while one block is traced, the
// next ones run aside. The answers are those of an embedded store, and nothing is read when they are asked for again.
func TestRoundTripsOfSearches(t *testing.T) {
	type most struct{ waits, statements int64 }
	for name, chain := range map[string]struct {
		traces, amsterdam bool
		all, one, page    most // if no block ran aside, the waits would be 232, 230 and 119 with a trace index, 223, 223 and 116 without
	}{
		"trace index":    {traces: true, all: most{105, 5200}, one: most{100, 600}, page: most{95, 2200}},
		"no trace index": {all: most{105, 5200}, one: most{105, 5200}, page: most{105, 4700}},
		"access list":    {traces: true, amsterdam: true, all: most{50, 5500}, one: most{60, 5500}, page: most{35, 5500}},
	} {
		t.Run(name, func(t *testing.T) {
			store, blocks := hopChain(t, chain.traces, chain.amsterdam)
			embedded := embeddedService(t, store)
			for _, question := range []struct {
				filter string
				params map[string]any
				most   most
			}{
				{"all", map[string]any{"fromBlock": "0x1", "toBlock": "0x8"}, chain.all},
				{"one receiver", map[string]any{"fromBlock": "0x1", "toBlock": "0x8", "toAddress": []any{hopper(2)}}, chain.one},
				{"a page", map[string]any{"fromBlock": "0x2", "toBlock": "0x8", "after": "0xa", "count": "0x41"}, chain.page},
			} {
				want := embedded.answer(t, "trace_filter", question.params)
				if want.Error != nil {
					t.Fatalf("%s: error %s", question.filter, want.Error)
				}
				synctest.Test(t, func(t *testing.T) {
					waits, statements := askTwice(t, store, blocks, want.Result, "trace_filter", question.params)
					if waits > question.most.waits || statements > question.most.statements {
						t.Errorf("%s: %d round trips with %d statements, expected at most %d and %d", question.filter, waits, statements, question.most.waits, question.most.statements)
					}
					t.Logf("%-15s %4d round trips, %5d statements", question.filter, waits, statements)
				})
			}
		})
	}
}

// TestCanceledSearchLeavesNothing cancels a search while blocks run aside.
func TestCanceledSearchLeavesNothing(t *testing.T) {
	store, blocks := hopChain(t, true, false)
	for _, after := range []time.Duration{36, 45, 54} {
		synctest.Test(t, func(t *testing.T) {
			cancelAfter(t, store, blocks, after*time.Millisecond, `{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[{"fromBlock":"0x1","toBlock":"0x8"}]}`)
		})
	}
}
