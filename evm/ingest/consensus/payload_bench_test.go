package consensus_test

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/core/types"
)

// BenchmarkNewPayload sends full blocks of Amsterdam one by one, with their access lists
// and without, and measures what one takes.
//
//	go test ./evm/ingest/consensus -run '^$' -bench NewPayload -benchtime 3x -cpu 1,2
func BenchmarkNewPayload(b *testing.B) {
	const before, measured = 24, 60
	dense := ingesttest.NewDense(b, 150, before, measured)
	for _, list := range []bool{true, false} {
		b.Run(map[bool]string{true: "with list", false: "without list"}[list], func(b *testing.B) {
			var used time.Duration
			for range b.N {
				b.StopTimer()
				f := ingesttest.NewFollowerOf(b, dense.Genesis, ingest.DefaultDepths())
				c := consensus.New(f.Follower, nil, slog.New(slog.DiscardHandler))
				for i := range before + measured {
					block := dense.DecodeBlock(b, i, list)
					if i < before {
						mustAccept(b, c, block)
						continue
					}
					runtime.GC() // as nothing else happens between two blocks
					began := ingesttest.ProcessorTime(b)
					b.StartTimer()
					mustAccept(b, c, block)
					b.StopTimer()
					used += ingesttest.ProcessorTime(b) - began
				}
			}
			blocks := float64(measured * b.N)
			b.ReportMetric(b.Elapsed().Seconds()*1e3/blocks, "ms/block")
			b.ReportMetric(used.Seconds()*1e3/blocks, "cpu-ms/block")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func mustAccept(b *testing.B, c *consensus.Chain, block *types.Block) {
	b.Helper()
	if status, err := c.NewPayload(b.Context(), block); err != nil || status.Verdict != engine.Valid {
		b.Fatalf("block %d: %+v, %v", block.NumberU64(), status, err)
	}
}
