package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/usage"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// BenchmarkTrace traces full blocks before Amsterdam and of it, and transactions in the
// middle of them.
//
//	go test ./evm/api -run '^$' -bench Trace -benchtime 300x
func BenchmarkTrace(b *testing.B) {
	const before, amsterdam = 20, 20
	dense := ingesttest.NewDense(b, 60, before, amsterdam)
	blocks := dense.Decode(b, true)
	s := serve(b, dense.Genesis, ingesttest.SourceOf(blocks))
	calls, diff := json.RawMessage(`{"tracer":"callTracer"}`), json.RawMessage(`{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}`)
	for _, kind := range []struct {
		name, method string
		config       json.RawMessage
	}{
		{"block, callTracer", "debug_traceBlockByNumber", calls},
		{"transaction, callTracer", "debug_traceTransaction", calls},
		{"transaction, struct logger", "debug_traceTransaction", json.RawMessage(`{}`)},
		{"transaction, prestate diff", "debug_traceTransaction", diff},
	} {
		for name, first := range map[string]int{"before Amsterdam": 5, "Amsterdam": before + 5} {
			b.Run(kind.name+", "+name, func(b *testing.B) {
				var out []byte
				var used time.Duration
				runs := 0
				began := usage.Read().Processor
				for b.Loop() {
					block := blocks[first+runs%(amsterdam-5)]
					var subject any = hexutil.Uint64(block.NumberU64())
					if kind.method == "debug_traceTransaction" {
						subject = block.Transactions()[(runs*7)%len(block.Transactions())].Hash()
					}
					params, err := json.Marshal([]any{subject, kind.config})
					if err != nil {
						b.Fatal(err)
					}
					if out, err = s.methods[kind.method](b.Context(), params, out[:0]); err != nil {
						b.Fatal(err)
					}
					runs++
				}
				used = usage.Read().Processor - began
				b.ReportMetric(float64(used.Microseconds())/float64(runs), "cpu-µs/op")
			})
		}
	}
}
