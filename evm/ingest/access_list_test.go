package ingest_test

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// withoutLists are blocks as a file or JSON-RPC brings them.
func withoutLists(blocks []*types.Block) []*types.Block {
	bare := make([]*types.Block, len(blocks))
	for i, block := range blocks {
		bare[i] = block.WithAccessListUnsafe(nil)
	}
	return bare
}

// TestParallelImport imports a chain whose blocks have their access lists with them,
// and the same chain without. Every stored row is the same, receipts, state and lists
// among them.
func TestParallelImport(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	parallel, inOrder := newTargetOf(t, genesis), newTargetOf(t, genesis)
	parallel.mustImport(blocks)
	inOrder.mustImport(withoutLists(blocks))
	if got, want := parallel.rows(), inOrder.rows(); !maps.Equal(got, want) {
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("row %q: %x in parallel, %x in order", key, got[key], want[key])
			}
		}
		t.Fatalf("%d rows in parallel, %d in order", len(got), len(want))
	}
	const amsterdam = ingesttest.CrossingBlocks - ingesttest.CrossingFork + 1
	if got := parallel.executor.ParallelBlocks(); got != amsterdam {
		t.Errorf("%d blocks ran in parallel, want all %d of Amsterdam", got, amsterdam)
	}
	if got := inOrder.executor.ParallelBlocks(); got != 0 {
		t.Errorf("%d blocks without lists ran in parallel", got)
	}
}

// TestStoredAccessLists reads the lists of a chain that arrived without them.
func TestStoredAccessLists(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	g := newTargetOf(t, genesis)
	g.mustImport(withoutLists(blocks))
	for _, block := range blocks {
		got, err := g.archive.AccessList(t.Context(), block.NumberU64())
		if block.NumberU64() < ingesttest.CrossingFork {
			if !errors.Is(err, archive.ErrNotFound) {
				t.Errorf("block %d before Amsterdam: %v, want ErrNotFound", block.NumberU64(), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := rlp.EncodeToBytes(block.AccessList())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("block %d: access list %x, want %x", block.NumberU64(), got, want)
		}
	}
}

// TestGenesisOfAmsterdam imports a chain that begins with Amsterdam.
func TestGenesisOfAmsterdam(t *testing.T) {
	crossing, _ := ingesttest.Crossing(t)
	config := *crossing.Config
	config.AmsterdamTime = new(uint64)
	genesis := &core.Genesis{Config: &config, GasLimit: 30_000_000, Alloc: crossing.Alloc}
	g := newTargetOf(t, genesis)
	list, err := g.archive.AccessList(t.Context(), 0)
	if err != nil || !bytes.Equal(list, rlp.EmptyList) {
		t.Errorf("the genesis has the access list %x (%v), want the empty one", list, err)
	}
}
