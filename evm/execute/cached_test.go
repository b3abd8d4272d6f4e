package execute_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// watchedReads counts what is read of a state, and can fail.
type watchedReads struct {
	evm.State
	flat    atomic.Int64 // accounts and slots
	failing atomic.Bool
}

var errGone = errors.New("the disk is gone")

func (s *watchedReads) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	s.flat.Add(1)
	if s.failing.Load() {
		return nil, errGone
	}
	return s.State.Account(ctx, address)
}

func (s *watchedReads) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	s.flat.Add(1)
	return s.State.Slot(ctx, address, slot)
}

// crossing is a chain up to a block, and the state before that block.
func crossing(t *testing.T) (*ingesttest.Follower, execute.Parent, *watchedReads, *types.Block) {
	t.Helper()
	genesis, blocks := ingesttest.Crossing(t)
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	if err := f.Add(t.Context(), blocks[0]); err != nil {
		t.Fatal(err)
	}
	history, number, err := f.Locate(t.Context(), blocks[1].ParentHash())
	if err != nil {
		t.Fatal(err)
	}
	reads := &watchedReads{State: history.StateAt(number)}
	return f, execute.Parent{Header: blocks[0].Header(), State: reads, Ancestors: archive.Ancestors{History: history}}, reads, blocks[1]
}

// TestReplaysShareTheirReads replays a block twice: the second time it reads no account or slot, and
// has the same root. A read that failed is not cached.
func TestReplaysShareTheirReads(t *testing.T) {
	f, parent, reads, block := crossing(t)
	replay := func() error {
		return f.Executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{Roots: true}, func(r *execute.Replay) error {
			if err := r.Skip(len(block.Transactions())); err != nil {
				return err
			}
			if root := r.Root(); !reads.failing.Load() && root != block.Root() {
				t.Errorf("the state root is %x, want %x", root, block.Root())
			}
			return nil
		})
	}
	reads.failing.Store(true)
	if err := replay(); !errors.Is(err, errGone) {
		t.Fatalf("a replay whose reads fail: %v", err)
	}
	if n := reads.flat.Load(); n != 1 {
		t.Errorf("%d accounts and slots were read although the first one failed", n)
	}
	reads.failing.Store(false)
	for round := range 2 {
		reads.flat.Store(0)
		if err := replay(); err != nil {
			t.Fatal(err)
		}
		if n := reads.flat.Load(); (n > 0) != (round == 0) {
			t.Errorf("replay %d read %d accounts and slots", round, n)
		}
	}
}
