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
	"ashlar/internal/usage"

	"github.com/ethereum/go-ethereum/core/types"
)

// BenchmarkNewPayload sends full blocks of Amsterdam one by one, each to a follower that
// gets its access list and to one that does not, in turns. The best time is the mean over
// the blocks of the best of all runs, for machines that do other things as well.
//
//	go test ./evm/ingest/consensus -run '^$' -bench NewPayload -benchtime 3x -cpu 1,2
func BenchmarkNewPayload(b *testing.B) {
	const before, measured = 24, 60
	dense := ingesttest.NewDense(b, 150, before, measured)
	var mean, best, used [2]time.Duration // with lists, without
	var bestOf [2][measured]time.Duration
	for run := range b.N {
		var chains [2]*consensus.Chain
		for which := range chains {
			f := ingesttest.NewFollowerOf(b, dense.Genesis, ingest.DefaultDepths())
			chains[which] = consensus.New(f.Follower, nil, slog.New(slog.DiscardHandler))
			for i := range before {
				mustAccept(b, chains[which], dense.DecodeBlock(b, i, which == 0))
			}
		}
		for i := range measured {
			for turn := range chains {
				which := (turn + run + i) % 2
				block := dense.DecodeBlock(b, before+i, which == 0)
				runtime.GC() // as nothing else happens between two blocks
				processor, began := usage.Read().Processor, time.Now()
				mustAccept(b, chains[which], block)
				took := time.Since(began)
				used[which] += usage.Read().Processor - processor
				mean[which] += took
				if shortest := &bestOf[which][i]; *shortest == 0 || took < *shortest {
					*shortest = took
				}
			}
		}
	}
	for which, name := range []string{"with", "without"} {
		for _, took := range bestOf[which] {
			best[which] += took
		}
		report := func(total time.Duration, blocks int, unit string) {
			b.ReportMetric(total.Seconds()*1e3/float64(blocks), name+"-"+unit)
		}
		report(mean[which], measured*b.N, "ms")
		report(best[which], measured, "best-ms")
		report(used[which], measured*b.N, "cpu-ms")
	}
	b.ReportMetric(0, "ns/op")
}

func mustAccept(b *testing.B, c *consensus.Chain, block *types.Block) {
	b.Helper()
	if status, err := c.NewPayload(b.Context(), block); err != nil || status.Verdict != engine.Valid {
		b.Fatalf("block %d: %+v, %v", block.NumberU64(), status, err)
	}
}
