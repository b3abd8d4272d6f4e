package ingest_test

import (
	"runtime"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/usage"
)

// BenchmarkImport imports full blocks of Amsterdam into memory, with their access lists
// and without. Blocks with lists run in parallel.
//
//	go test ./evm/ingest -run '^$' -bench Import -benchtime 3x
func BenchmarkImport(b *testing.B) {
	const before, measured = 24, 100
	chain := ingesttest.NewDense(b, 150, before, measured)
	genesis := chain.Genesis
	for _, lists := range []bool{true, false} {
		b.Run(map[bool]string{true: "with lists", false: "without lists"}[lists], func(b *testing.B) {
			var used time.Duration
			for range b.N {
				b.StopTimer()
				source := chain.Decode(b, lists)
				store := ingesttest.Store(b)
				a, err := archive.Create(b.Context(), store, genesis)
				if err != nil {
					b.Fatal(err)
				}
				executor, err := execute.New(genesis.Config)
				if err != nil {
					b.Fatal(err)
				}
				importer, err := ingest.New(b.Context(), a, executor, genesis)
				if err != nil {
					b.Fatal(err)
				}
				if err := importer.Import(b.Context(), ingesttest.SourceOf(source[:before])); err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				began := usage.Read().Processor
				b.StartTimer()
				if err := importer.Import(b.Context(), ingesttest.SourceOf(source[before:])); err != nil {
					b.Fatal(err)
				}
				used += usage.Read().Processor - began
			}
			b.ReportMetric(float64(measured*b.N)/b.Elapsed().Seconds(), "blocks/s")
			b.ReportMetric(float64(chain.Transactions*b.N)/b.Elapsed().Seconds(), "transactions/s")
			b.ReportMetric(used.Seconds()*1e3/float64(measured*b.N), "cpu-ms/block")
		})
	}
}
