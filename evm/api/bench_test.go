package api_test

import (
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// BenchmarkMethods answers questions about a block of 61 transactions, each with
// a log of three topics, without the envelope of JSON-RPC.
func BenchmarkMethods(b *testing.B) {
	s := serveMade(b)
	block := s.blocks[madeBusyBlock]
	number, tx := hexutil.Uint64(madeBusyBlock), block.Transactions()[madeBusy/2].Hash()
	for _, c := range []struct {
		name, method string
		args         []any
	}{
		{"block, whole", "eth_getBlockByNumber", []any{number, true}},
		{"block, hashes", "eth_getBlockByNumber", []any{number, false}},
		{"block by hash, hashes", "eth_getBlockByHash", []any{block.Hash(), false}},
		{"block receipts", "eth_getBlockReceipts", []any{number}},
		{"receipt", "eth_getTransactionReceipt", []any{tx}},
		{"transaction by hash", "eth_getTransactionByHash", []any{tx}},
		{"transaction by index", "eth_getTransactionByBlockNumberAndIndex", []any{number, "0x1e"}},
		{"storage", "eth_getStorageAt", []any{logger, "0x5", number}},
		{"balance", "eth_getBalance", []any{logger, "latest"}},
		{"block number", "eth_blockNumber", []any{}},
		{"gas price", "eth_gasPrice", []any{}},
		{"fee history", "eth_feeHistory", []any{"0x4", "latest", []int{10, 50, 90}}},
		{"unknown transaction", "eth_getTransactionByHash", []any{common.Hash{1}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			method := s.methods[c.method]
			params, err := json.Marshal(c.args)
			if err != nil {
				b.Fatal(err)
			}
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				if out, err = method(b.Context(), params, out[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(out)))
		})
	}
}
