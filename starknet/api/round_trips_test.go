package api

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/kv/kvtest"
	"ashlar/kv/rowcache"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
	"ashlar/starknet/source/synthetic"
)

// TestRoundTrips counts how often a question waits for the store, one wait after the other,
// when nothing is cached. Reads that are made side by side are one wait.
func TestRoundTrips(t *testing.T) {
	options := synthetic.Default()
	options.Transactions = 40
	blocks := next(synthetic.New(options), 300)
	large := &blocks[250].Transactions[0].Receipt // in several rows
	large.Events = append(large.Events, slices.Repeat([]starknet.Event{{Data: []starknet.Felt{starknet.FeltOf(1)}}}, 200)...)
	n := newNetwork(t, blocks...)
	var longest *starknet.Transaction // by its events
	for _, block := range blocks {
		for i := range block.Transactions {
			if one := &block.Transactions[i]; longest == nil || len(one.Receipt.Events) > len(longest.Receipt.Events) {
				longest = one
			}
		}
	}
	rare := synthetic.Contract(6)
	many := fmt.Sprintf("%q", synthetic.Account(1))
	for i := range 600 {
		many += fmt.Sprintf(`,"0x%x"`, 1<<40+i)
	}
	for _, question := range []struct {
		method, params string
		want           int64
	}{
		{"starknet_blockNumber", `[]`, 0},
		{"starknet_getBlockWithTxHashes", `[{"block_number":200}]`, 1},
		{"starknet_getBlockWithTxHashes", fmt.Sprintf(`[{"block_hash":%q}]`, blocks[200].Hash), 3},
		{"starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, longest.Hash), 3},
		{"rollup_getEvents", `[{"chunk_size":100}]`, 2},
		{"rollup_getEvents", fmt.Sprintf(`[{"address":%q,"chunk_size":50}]`, rare), 2},
		{"rollup_getEvents", fmt.Sprintf(`[{"address":%q,"chunk_size":150}]`, rare), 4}, // of more than 64 blocks: more of the index, then more blocks
		{"rollup_getEvents", fmt.Sprintf(`[{"keys":[[],[%q,%q,%q,%q]],"chunk_size":20}]`,
			synthetic.Account(1), synthetic.Account(2), synthetic.Account(3), synthetic.Account(4)), 2},
		{"rollup_getEvents", `[{"keys":[[],[` + many + `]],"chunk_size":10}]`, 4},                                                     // 256 keys at once, 256, the others, and the blocks
		{"starknet_getEvents", fmt.Sprintf(`[{"keys":[[%q],[%q]],"chunk_size":20}]`, synthetic.Selector(0), synthetic.Account(1)), 4}, // the first key occurs in all blocks
	} {
		synctest.Test(t, func(t *testing.T) {
			distant := &kvtest.Distant{Store: n.store, Statement: time.Millisecond}
			cached, err := rowcache.New(t.Context(), distant, rowcache.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := archive.Open(t.Context(), cached)
			if err != nil {
				t.Fatal(err)
			}
			cached.Follow(a.Span().Last.Number, nil)
			far := &network{methods: handlersOf(t, New(query.NewChain(a, noTip), Usual()))}
			distant.Count.Store(0)
			began := time.Now()
			answer, err := far.ask(t, question.method, question.params)
			waits := time.Since(began).Milliseconds()
			if near, _ := n.ask(t, question.method, question.params); err != nil || string(answer) != string(near) || len(answer) < 3 {
				t.Errorf("%s%s: %.200s, %v", question.method, question.params, answer, err)
			}
			if waits != question.want {
				t.Errorf("%s%s: %d round trips with %d statements, expected %d", question.method, question.params, waits, distant.Count.Load(), question.want)
			}
			t.Logf("%-45s %d round trips, %2d statements", question.method, waits, distant.Count.Load())
		})
	}
}
