package api

import (
	"fmt"
	"slices"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/starknet"
	"ashlar/starknet/query"
)

// An answer about a block whose hash was not recomputed, or does not cover what is answered, is
// what a node says.
func TestUncoveredBlocksAreUnverified(t *testing.T) {
	blocks := next(made(3, 900), 20)
	for i, block := range blocks {
		switch {
		case i < 5:
			block.Version = "0.13.1" // covers no receipts
		case i < 10:
			block.Version, block.Commitments.StateDiff = "0.14.1", starknet.FeltOf(1)
		case i < 15:
			block.Version = "0.14.1" // as an old node sends it
		default:
			block.Version, block.Commitments.StateDiff = "0.15.0", starknet.FeltOf(1)
		}
	}
	n := newNetwork(t, blocks...)
	methods, err := New(query.NewChain(n.archive, noTip), Usual()).Methods()
	if err != nil {
		t.Fatal(err)
	}
	verified := func(method, params string) jsonrpc.Verification {
		t.Helper()
		for m := range methods.All() {
			if m.Name == method {
				got, err := jsonrpctest.Verification(t.Context(), m, params)
				if err != nil {
					t.Fatalf("%s%s: %v", method, params, err)
				}
				return got
			}
		}
		t.Fatalf("no method %s", method)
		return 0
	}
	expect := func(is bool, method, params string) {
		t.Helper()
		want := jsonrpc.Unverified
		if is {
			want = jsonrpc.Executed
		}
		if got := verified(method, params); got != want {
			t.Errorf("%s%s: verified %s, want %s", method, params, got, want)
		}
	}
	for i, block := range blocks {
		expect(i < 10, "starknet_getBlockWithTxHashes", fmt.Sprintf(`[{"block_number":%d}]`, block.Number))
		for j := range block.Transactions {
			expect(i >= 5 && i < 10, "starknet_getTransactionReceipt", fmt.Sprintf("[%q]", block.Transactions[j].Hash))
		}
	}
	for _, head := range []string{"starknet_blockNumber", "starknet_blockHashAndNumber"} {
		expect(false, head, `[]`)
	}
	for _, constant := range []string{"starknet_chainId", "starknet_specVersion"} {
		expect(true, constant, `[]`)
	}
	expect(false, "starknet_getBlockWithTxHashes", `["pending"]`)
	page := func(from, to, size int, more string) string {
		return fmt.Sprintf(`[{"from_block":{"block_number":%d},"to_block":{"block_number":%d},"chunk_size":%d%s}]`, 900+from, 900+to, size, more)
	}
	for _, method := range []string{"rollup_getEvents", "starknet_getEvents"} {
		expect(true, method, page(0, 9, 1000, ""))
		expect(true, method, page(3, 3, 5, ""))
		expect(false, method, page(0, 10, 1, ""))
		expect(false, method, page(10, 12, 5, ""))
		expect(false, method, page(15, 15, 5, `,"address":"0x1"`)) // none are shown
		expect(true, method, page(9, 4, 5, ""))                    // an empty range says nothing
	}
	// A block in the middle of the range counts where it is shown.
	between := slices.Clone(blocks[5].Transactions)
	at := slices.IndexFunc(between, func(tx starknet.Transaction) bool { return len(tx.Receipt.Events) > 0 })
	if at < 0 {
		t.Fatal("no event to look for")
	}
	other := next(made(4, 900), 9)
	for i, block := range other {
		if block.Version, block.Commitments.StateDiff = "0.14.1", starknet.FeltOf(1); i == 4 {
			block.Version = "99.0"
			block.Transactions = between
		}
	}
	methods, err = New(query.NewChain(newNetwork(t, other...).archive, noTip), Usual()).Methods()
	if err != nil {
		t.Fatal(err)
	}
	expect(false, "rollup_getEvents", page(0, 8, 1000, ""))
	expect(true, "rollup_getEvents", page(0, 3, 1000, ""))
	expect(true, "rollup_getEvents", page(0, 8, 1, ""))
	expect(true, "starknet_blockNumber", `[]`)
	expect(true, "starknet_blockHashAndNumber", `[]`)
}
