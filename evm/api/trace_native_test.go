package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/params"
)

// TestNativeTracers compares tracers of ours with those of the library, which muxTracer
// combines, for every transaction of several chains.
func TestNativeTracers(t *testing.T) {
	raced.Skip(t)
	tracers := map[string][]string{
		"callTracer": {`{}`, `{"withLog":true}`, `{"onlyTopCall":true,"withLog":true}`},
		"prestateTracer": {
			`{}`, `{"diffMode":true}`, `{"includeEmpty":true}`, `{"disableCode":true}`, `{"disableStorage":true,"includeEmpty":true}`,
			`{"diffMode":true,"disableCode":true}`, `{"diffMode":true,"disableStorage":true}`,
		},
	}
	for chain, build := range indexedChains(t) {
		t.Run(chain, func(t *testing.T) {
			genesis, blocks := build()
			s := serve(t, genesis, ingesttest.SourceOf(blocks))
			compared := 0
			for tracer, options := range tracers {
				for _, options := range options {
					ours := json.RawMessage(fmt.Sprintf(`{"tracer":%q,"tracerConfig":%s}`, tracer, options))
					mux := json.RawMessage(fmt.Sprintf(`{"tracer":"muxTracer","tracerConfig":{%q:%s}}`, tracer, options))
					for _, block := range blocks {
						var got []struct{ Result json.RawMessage }
						var want []struct{ Result map[string]json.RawMessage }
						s.ask(t, &got, "debug_traceBlockByNumber", hexutil.Uint64(block.NumberU64()), ours)
						s.ask(t, &want, "debug_traceBlockByNumber", hexutil.Uint64(block.NumberU64()), mux)
						if len(got) != len(block.Transactions()) || len(want) != len(got) {
							t.Fatalf("block %d: %d and %d traces", block.NumberU64(), len(got), len(want))
						}
						for i := range got {
							sameJSON(t, fmt.Sprintf("%s of block %d, transaction %d", ours, block.NumberU64(), i), got[i].Result, want[i].Result[tracer])
							compared++
						}
					}
				}
			}
			if compared == 0 {
				t.Error("the chain has no transactions")
			}
		})
	}
}

// TestTracerOptions: a tracer works without options, and options with which one of the library
// panics are an error of the client.
func TestTracerOptions(t *testing.T) {
	s := serveMade(t)
	for _, test := range []struct{ config, want string }{
		{`{"tracer":"muxTracer"}`, `{}`},
		{`{"tracer":"erc7562Tracer","tracerConfig":{"stackTopItemsSize":-1}}`, negativeStack},
		{`{"tracer":"muxTracer","tracerConfig":{"erc7562Tracer":{"StackTopItemsSize":-1}}}`, negativeStack},
	} {
		answer := s.answer(t, "debug_traceCall", map[string]any{"data": "0x6001600101"}, "latest", json.RawMessage(test.config))
		got := answer.Result
		if answer.Error != nil {
			got = answer.Error
		}
		sameJSON(t, test.config, got, json.RawMessage(test.want))
	}
}

const negativeStack = `{"code":-32000,"message":"invalid stackTopItemsSize -1 (want a number that is not negative)"}`

// TestTouchedRecipient: before EIP-158 the recipient of a block's fees exists after a call, also
// after one that pays nothing.
func TestTouchedRecipient(t *testing.T) {
	config := &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: new(big.Int), Ethash: new(params.EthashConfig)}
	genesis, blocks := newRandomChain(0).build(t, config, 3)
	s := serve(t, genesis, ingesttest.SourceOf(blocks))
	recipient := common.Address{0xcc}
	var diff struct{ Post map[common.Address]any }
	s.ask(t, &diff, "debug_traceCall", map[string]any{"to": common.Address{0xaa}}, "0x0", map[string]any{
		"tracer": "prestateTracer", "tracerConfig": map[string]any{"diffMode": true},
		"blockOverrides": map[string]any{"feeRecipient": recipient},
	})
	if change, changed := diff.Post[recipient]; changed {
		t.Errorf("the recipient is %v, as if it did not exist", change)
	}
}
