package execute_test

import (
	"context"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
)

// slotState is a state whose slots are read by functions. It implements [execute.Ahead], too.
type slotState struct {
	evm.State
	read, aside func(ctx context.Context, slot common.Hash) error // slot is a keccak256

	waits *atomic.Int64 // of the replay
	mu    sync.Mutex
	slots map[common.Hash]bool // guarded by mu: keccak256 of those that were read aside without an error
}

func (s *slotState) CountWaits(ctx context.Context, waits *atomic.Int64) context.Context {
	s.waits = waits
	return ctx
}

func (s *slotState) Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, true)
}
func (s *slotState) Read(context.Context, []common.Hash)                      {}
func (s *slotState) ReadPaths(context.Context, map[common.Hash][]common.Hash) {}

func (s *slotState) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	if ctx.Value(asideKey{}) == nil {
		if err := s.read(ctx, slot); err != nil {
			return common.Hash{}, err
		}
		return s.State.Slot(ctx, address, slot)
	}
	if err := s.aside(ctx, slot); err != nil {
		return common.Hash{}, err
	}
	s.mu.Lock()
	s.slots[slot] = true
	s.mu.Unlock()
	return s.State.Slot(ctx, address, slot)
}

// replayReads traces the first transactions of a block on a state, and returns the executor.
func replayReads(t *testing.T, s *slotState, transactions, traced int) *execute.Executor {
	t.Helper()
	stored, config, block := blockOfReads(t, transactions)
	executor, err := execute.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s.State, s.slots = stored, make(map[common.Hash]bool)
	parent := execute.Parent{Header: &types.Header{Number: new(big.Int), GasLimit: block.GasLimit()}, State: s, Ahead: s}
	err = executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{}, func(r *execute.Replay) error {
		r.Expect(0, transactions)
		for range traced {
			if err := r.Trace(t.Context(), execute.Tracer{Hooks: new(tracing.Hooks), Stop: func(error) {}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

// TestFailedReadAsideLeavesTheRest traces a block of which one read aside fails. All other transactions still run aside.
func TestFailedReadAsideLeavesTheRest(t *testing.T) {
	const transactions = 200
	synctest.Test(t, func(t *testing.T) {
		var failed atomic.Bool
		s := new(slotState)
		s.read = func(context.Context, common.Hash) error {
			if s.waits.Add(1) == 5 {
				time.Sleep(time.Hour)
			}
			return nil
		}
		s.aside = func(context.Context, common.Hash) error {
			if failed.CompareAndSwap(false, true) {
				return errors.New("failed aside")
			}
			time.Sleep(time.Millisecond)
			return nil
		}
		replayReads(t, s, transactions, transactions)
		ended := 0
		for i := range transactions {
			if s.slots[evm.HashSlot(ownSlot(i))] {
				ended++
			}
		}
		if ended != transactions-2 { // without the first one, which the replay runs, and the one that failed
			t.Errorf("%d transactions ran aside to their end, expected %d", ended, transactions-2)
		}
	})
}

// TestReadsAsideAreCounted ends a replay while reads aside are under way. What they add to the cached reads is counted.
func TestReadsAsideAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(slotState)
		s.read = func(context.Context, common.Hash) error {
			if s.waits.Add(1) >= 5 {
				synctest.Wait()
			}
			return nil
		}
		s.aside = func(ctx context.Context, _ common.Hash) error {
			<-ctx.Done() // it has been read, too late to be canceled
			return nil
		}
		executor := replayReads(t, s, 40, 1)
		if len(s.slots) == 0 {
			t.Error("nothing was read aside")
		}
		if cached, counted := executor.CachedReads(); cached != counted {
			t.Errorf("%d reads are cached, but %d are counted", cached, counted)
		}
	})
}

// TestFewWaitsRunNothingAside traces a block of which nearly all is in memory.
func TestFewWaitsRunNothingAside(t *testing.T) {
	reads := 0
	s := &slotState{aside: func(context.Context, common.Hash) error {
		t.Error("a transaction ran aside")
		return nil
	}}
	s.read = func(context.Context, common.Hash) error {
		if reads++; reads > 200 && reads < 204 {
			s.waits.Add(1)
		}
		return nil
	}
	replayReads(t, s, 250, 250)
	if waits := s.waits.Load(); waits != 3 {
		t.Errorf("the replay waited %d times, expected 3", waits)
	}
}
