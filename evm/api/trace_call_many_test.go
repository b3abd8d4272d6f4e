package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestTracedBundleIsABlock: the transactions of a block as a bundle that runs before them have the traces of the block.
func TestTracedBundleIsABlock(t *testing.T) {
	for chain, build := range indexedChains(t) {
		t.Run(chain, func(t *testing.T) {
			genesis, blocks := build()
			s := serve(t, genesis, ingesttest.SourceOf(blocks))
			config := json.RawMessage(`{"tracer":"callTracer","tracerConfig":{"withLog":true}}`)
			compared := 0
			for _, block := range blocks {
				var want []struct{ Result json.RawMessage }
				s.ask(t, &want, "debug_traceBlockByNumber", hexutil.Uint64(block.NumberU64()), config)
				if len(want) == 0 {
					continue
				}
				var calls []any
				for _, tx := range block.Transactions() {
					calls = append(calls, messageOf(t, types.LatestSigner(genesis.Config), tx))
				}
				var got [][]json.RawMessage
				before := map[string]any{"blockNumber": hexutil.Uint64(block.NumberU64()), "transactionIndex": 0}
				s.ask(t, &got, "debug_traceCallMany", []any{map[string]any{"transactions": calls}}, before, config)
				if len(got) != 1 || len(got[0]) != len(want) {
					t.Fatalf("block %d: %d bundles, expected 1 with %d traces", block.NumberU64(), len(got), len(want))
				}
				for i := range want {
					sameJSON(t, fmt.Sprintf("block %d, transaction %d", block.NumberU64(), i), got[0][i], want[i].Result)
					compared++
				}
			}
			if compared == 0 {
				t.Error("the chain has no transactions")
			}
		})
	}
}

// messageOf returns the call object of a transaction.
func messageOf(t *testing.T, signer types.Signer, tx *types.Transaction) map[string]any {
	t.Helper()
	from, err := types.Sender(signer, tx)
	if err != nil {
		t.Fatal(err)
	}
	message := map[string]any{
		"from": from, "gas": hexutil.Uint64(tx.Gas()), "value": (*hexutil.Big)(tx.Value()), "data": hexutil.Bytes(tx.Data()), "nonce": hexutil.Uint64(tx.Nonce()),
	}
	if tx.To() != nil {
		message["to"] = *tx.To()
	}
	if tx.Type() >= types.DynamicFeeTxType {
		message["maxFeePerGas"], message["maxPriorityFeePerGas"] = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
	} else {
		message["gasPrice"] = (*hexutil.Big)(tx.GasPrice())
	}
	if hashes := tx.BlobHashes(); len(hashes) > 0 {
		message["blobVersionedHashes"], message["maxFeePerBlobGas"] = hashes, (*hexutil.Big)(tx.BlobGasFeeCap())
	}
	if list := tx.AccessList(); len(list) > 0 {
		message["accessList"] = list
	}
	if list := tx.SetCodeAuthorizations(); len(list) > 0 {
		message["authorizationList"] = list
	}
	return message
}

// TestTracedBundlesAboveTheLimit: the number of calls is looked at before any is run.
func TestTracedBundlesAboveTheLimit(t *testing.T) {
	s := serveMade(t)
	calls := make([]any, 10_001)
	for i := range calls {
		calls[i] = map[string]any{"to": common.Address{0xaa}}
	}
	failure := string(s.answer(t, "debug_traceCallMany", []any{map[string]any{"transactions": calls}}).Error)
	if !strings.Contains(failure, "too many calls: 10001 > 10000") {
		t.Errorf("%s", failure)
	}
}
