// Package ingesttest has what tests of the ways into an archive begin with: the
// demo network's first blocks, built by go-ethereum, and followers in memory.
package ingesttest

import (
	"context"
	"io"
	"sync"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// Source is an [ingest.Source] of blocks in memory.
type Source struct{ left []*types.Block }

// SourceOf returns a source of blocks.
func SourceOf(blocks []*types.Block) *Source { return &Source{blocks} }

// Next implements [ingest.Source].
func (s *Source) Next() (*types.Block, error) {
	if len(s.left) == 0 {
		return nil, io.EOF
	}
	next := s.left[0]
	s.left = s.left[1:]
	return next, nil
}

// Genesis is that of the demo network. The caller may change it.
func Genesis(t testing.TB) *core.Genesis {
	t.Helper()
	shown, err := network()
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := shown.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	return genesis
}

// network is the demo network. Its keys and contracts take milliseconds to make, and tests ask
// for the genesis thousands of times.
var network = sync.OnceValues(func() (*demo.Network, error) { return demo.New(demo.Default()) })

// ChainBlocks is how many blocks Chain has.
const ChainBlocks = 40

// Chain is the demo network's first blocks behind the genesis, with transactions of
// every kind. It is built once and must not be changed.
func Chain(t testing.TB) []*types.Block {
	t.Helper()
	blocks, err := chain()
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

var chain = sync.OnceValues(func() ([]*types.Block, error) {
	shown, err := network()
	if err != nil {
		return nil, err
	}
	builder, err := reference.New(shown)
	if err != nil {
		return nil, err
	}
	var blocks []*types.Block
	err = builder.Build(context.Background(), ChainBlocks, func(b reference.Block) error {
		blocks = append(blocks, b.Block)
		return nil
	})
	return blocks, err
})

// Store is an empty store in memory, which is closed when the test ends.
func Store(t testing.TB) *pebble.Store {
	t.Helper()
	store, err := pebbletest.NewDisk().Open(pebble.Options{Path: "network"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Follower is a follower of the demo network with an archive of its own.
type Follower struct {
	*ingest.Follower
	Archive  *archive.Archive
	Tip      *tip.Tip
	Executor *execute.Executor
	Genesis  *types.Block // its only block at first
}

// NewFollower makes a follower.
func NewFollower(t testing.TB, depths ingest.Depths) *Follower {
	t.Helper()
	return NewFollowerOf(t, Genesis(t), depths)
}

// NewFollowerOf makes a follower of a network with that genesis.
func NewFollowerOf(t testing.TB, genesis *core.Genesis, depths ingest.Depths) *Follower {
	t.Helper()
	return NewFollowerOver(t, Store(t), genesis, depths)
}

// NewFollowerOver is NewFollowerOf over an empty store.
func NewFollowerOver(t testing.TB, store kv.Store, genesis *core.Genesis, depths ingest.Depths) *Follower {
	t.Helper()
	a, err := archive.Create(t.Context(), store, genesis, archive.TraceIndex)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(genesis.Config, execute.RecordTraces(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.New(t.Context(), a, executor, genesis); err != nil {
		t.Fatal(err)
	}
	settled, _ := a.Settled()
	unsettled, err := tip.Open(t.Context(), store, archive.Tables(), settled)
	if err != nil {
		t.Fatal(err)
	}
	return &Follower{ingest.NewFollower(a, unsettled, executor, depths), a, unsettled, executor, genesis.ToBlock()}
}
