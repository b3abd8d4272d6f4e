package ingest_test

import (
	"context"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// BenchmarkImport imports full blocks of Amsterdam into memory, with their access lists
// and without. Blocks with lists run in parallel.
//
//	go test ./evm/ingest -run '^$' -bench Import -benchtime 3x
func BenchmarkImport(b *testing.B) {
	const before, measured = 24, 100
	genesis, blocks := denseChain(b, before, measured)
	for name, list := range map[string]bool{"with lists": true, "without lists": false} {
		b.Run(name, func(b *testing.B) {
			source := blocks
			if !list {
				source = withoutLists(blocks)
			}
			for range b.N {
				b.StopTimer()
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
				if err := importer.Import(b.Context(), sourceOf(source[:before])); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := importer.Import(b.Context(), sourceOf(source[before:])); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(measured*b.N)/b.Elapsed().Seconds(), "blocks/s")
			var transactions int
			for _, block := range source[before:] {
				transactions += len(block.Transactions())
			}
			b.ReportMetric(float64(transactions*b.N)/b.Elapsed().Seconds(), "transactions/s")
		})
	}
}

// denseChain builds a chain with many accounts and full blocks, of Amsterdam after the
// first.
func denseChain(b *testing.B, before, measured int) (*core.Genesis, []*types.Block) {
	b.Helper()
	config := demo.Dense(150)
	config.AmsterdamBlock = uint64(before)
	network, err := demo.New(config)
	if err != nil {
		b.Fatal(err)
	}
	genesis, err := network.Genesis()
	if err != nil {
		b.Fatal(err)
	}
	builder, err := reference.New(network)
	if err != nil {
		b.Fatal(err)
	}
	var blocks []*types.Block
	err = builder.Build(context.Background(), before+measured, func(built reference.Block) error {
		blocks = append(blocks, built.Block)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return genesis, blocks
}
