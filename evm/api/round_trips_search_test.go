package api_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoundTripsOfSearches counts the waits of trace_filter over several blocks when nothing is cached: while one block is traced, the
// next ones run aside. The answers are those of an embedded store, and nothing is read when they are asked for again.
func TestRoundTripsOfSearches(t *testing.T) {
	for name, traces := range map[string]bool{"trace index": true, "no trace index": false} {
		t.Run(name, func(t *testing.T) {
			store, blocks := hopChain(t, traces, false)
			embedded := embeddedService(t, store)
			for filter, params := range map[string]map[string]any{
				"all":          {"fromBlock": "0x1", "toBlock": "0x8"},
				"one receiver": {"fromBlock": "0x1", "toBlock": "0x8", "toAddress": []any{hopper(2)}},
				"a page":       {"fromBlock": "0x2", "toBlock": "0x8", "after": "0xa", "count": "0x41"},
			} {
				want := embedded.answer(t, "trace_filter", params)
				if want.Error != nil {
					t.Fatalf("%s: error %s", filter, want.Error)
				}
				synctest.Test(t, func(t *testing.T) {
					s, distant := distantService(t, store, blocks)
					distant.Count.Store(0)
					began := time.Now()
					answer := s.answer(t, "trace_filter", params)
					waits, statements := time.Since(began).Milliseconds(), distant.Count.Load()
					if !bytes.Equal(answer.Result, want.Result) || answer.Error != nil {
						t.Errorf("%s: %.300s, error %s, expected %.300s", filter, answer.Result, answer.Error, want.Result)
					}
					if waits > 110 {
						t.Errorf("%s: %d round trips with %d statements, expected at most 110", filter, waits, statements)
					}
					again := s.answer(t, "trace_filter", params)
					if !bytes.Equal(again.Result, want.Result) {
						t.Errorf("%s, again: %.300s, expected %.300s", filter, again.Result, want.Result)
					}
					if more := distant.Count.Load() - statements; more > 0 {
						t.Errorf("%s, again: %d statements", filter, more)
					}
					t.Logf("%-15s %4d round trips, %5d statements; again %d", filter, waits, statements, distant.Count.Load()-statements)
				})
			}
		})
	}
}
