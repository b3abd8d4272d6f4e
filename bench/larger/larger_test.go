package main

import (
	"errors"
	"path/filepath"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
	"ashlar/kv/pebble"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// importDemo imports blocks of the demo's busy network into a store, and returns its path.
func importDemo(t *testing.T, count int) string {
	t.Helper()
	network, err := demo.New(demo.Dense(60))
	if err != nil {
		t.Fatal(err)
	}
	builder, err := reference.New(network)
	if err != nil {
		t.Fatal(err)
	}
	var made []*types.Block
	if err := builder.Build(t.Context(), count, func(b reference.Block) error {
		made = append(made, b.Block)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	genesis, err := network.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store")
	store, err := pebble.Open(pebble.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := importInto(t, store, genesis, ingesttest.SourceOf(made)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Compact(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func importInto(t *testing.T, store *pebble.Store, genesis *core.Genesis, source ingest.Source) error {
	a, err := archive.Create(t.Context(), store, genesis)
	if err != nil {
		return err
	}
	executor, err := execute.New(genesis.Config)
	if err != nil {
		return err
	}
	importer, err := ingest.New(t.Context(), a, executor, genesis)
	if err != nil {
		return err
	}
	return importer.Import(t.Context(), source)
}

// Each kind of answer reads at most so many blocks of a store that is ten times as large as
// its cache. This cache is so small that the filter of a table does not fit into a shard of it:
// it is read anew for each row of an older state. Look-ups by hash ask no filter.
func TestBlocksReadForAnAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("imports a chain")
	}
	const filter = 1
	most := map[string]float64{
		"storage, latest":                1.1,
		"storage, any block":             1.1 + filter,
		"balance, latest":                1.1,
		"balance, any block":             1.1 + filter,
		"block by hash, hashes only":     1.1,
		"block by number, hashes only":   1.1,
		"block by number, full":          1.1,
		"transaction by hash":            2,
		"transaction by block and index": 1.1,
		"receipt":                        3,
		"logs of one block":              2.1,
		"balanceOf, latest":              1.1,
		"balanceOf, any block":           2*1.1 + 2*filter, // the token's account, and the balance
	}
	path := importDemo(t, 150)
	size, chain, err := takeSample(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := options{path: path, answers: 1000, batch: 1}
	for i, k := range kinds() {
		limit, ok := most[k.name]
		if !ok {
			continue
		}
		delete(most, k.name)
		each, err := o.measure(t.Context(), k, uint64(i), size/10, chain)
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		t.Logf("%s: %.2f blocks", k.name, each.blocks)
		if each.blocks > limit {
			t.Errorf("%s: an answer reads %.2f blocks of a store of %d bytes, expected at most %.1f", k.name, each.blocks, size, limit)
		}
	}
	for name := range most {
		t.Errorf("no kind %q", name)
	}
}

// TestSlide: all kinds are answered while a window moves, and rows are removed meanwhile.
func TestSlide(t *testing.T) {
	if testing.Short() {
		t.Skip("imports a chain")
	}
	path := importDemo(t, 60)
	_, chain, err := takeSample(t.Context(), path, answeredFrom)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.Open(pebble.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n, err := open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	s := &slide{opened: n, store: store, chain: chain, kinds: kinds(), askers: 2}
	all, err := s.run(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for k := range all {
		answers += len(all[k][idle].waited) + len(all[k][removing].waited)
	}
	if first := n.archive.Extent().State; s.removed == 0 || answers == 0 || first != 31 {
		t.Errorf("%d rows removed up to the state of block %d, %d answers, want some, and block 31", s.removed, first, answers)
	}
}
