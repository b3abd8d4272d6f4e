package api

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/starknet"
)

// TestAnswersEndAtTheLimit: whatever has many parts is not made any further than one
// part behind the limit.
func TestAnswersEndAtTheLimit(t *testing.T) {
	blocks := next(made(1, 0), 30)
	fullest := blocks[0] // by its transactions
	for _, block := range blocks {
		if len(block.Transactions) > len(fullest.Transactions) {
			fullest = block
		}
	}
	longest := &fullest.Transactions[0] // by its events
	longest.Receipt.Events = slices.Repeat([]starknet.Event{{Data: make([]starknet.Felt, 10)}}, 1000)
	n := newNetwork(t, blocks...)
	const part = 5000 // no part is larger
	for _, c := range []struct {
		method, params string
		limit          int
	}{
		{"rollup_getEvents", `[{"chunk_size":1024}]`, 10_000},
		{"starknet_getEvents", `[{"chunk_size":1024}]`, 10_000},
		{"starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, longest.Hash), 300},
		{"starknet_getBlockWithTxHashes", fmt.Sprintf(`[{"block_number":%d}]`, fullest.Number), 300},
	} {
		request := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, c.method, c.params)
		buffer := make([]byte, 4<<20)
		whole := jsonrpc.NewServer(n.methods, jsonrpc.Config{}).Answer(t.Context(), request, nil)
		answer := jsonrpc.NewServer(n.methods, jsonrpc.Config{AnswerBytes: c.limit}).Answer(t.Context(), request, buffer[:0])
		if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"response too large"}}`; string(answer) != want {
			t.Errorf("%s: %.300s", c.method, answer)
		}
		appended := len(bytes.TrimRight(buffer, "\x00"))
		if appended >= len(whole) || appended > c.limit+part {
			t.Errorf("%s: %d bytes of %d were made, want at most %d", c.method, appended, len(whole), c.limit+part)
		}
	}
}
