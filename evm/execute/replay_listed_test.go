package execute_test

import (
	"context"
	"sync/atomic"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// inventedBlock is a stored block whose access list has another value for a slot.
type inventedBlock struct {
	block *types.Block
	reads int
	value uint64 // of slot 1 of the store contract after transaction 2
}

func (b *inventedBlock) AccessList(context.Context) ([]byte, error) {
	b.reads++
	list := b.block.AccessList().Copy()
	for _, account := range *list {
		for _, slot := range account.StorageChanges {
			if account.Address == ingesttest.StoreContract && slot.Slot.IsUint64() && slot.Slot.Uint64() == 1 {
				slot.SlotChanges[0].PostValue = uint256.NewInt(b.value)
			}
		}
	}
	return rlp.EncodeToBytes(list)
}

func (b *inventedBlock) Changes(context.Context) (execute.StoredChanges, error) { return nil, nil }

func (b *inventedBlock) LogsBefore(context.Context, int) (uint64, error) { return 40, nil }

// TestSkipRunsNothing skips transactions of a block with a stored access list that does
// not say what they do. The next transaction logs the slot as the list has it: the ones
// before did not run.
func TestSkipRunsNothing(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	block := blocks[ingesttest.CrossingFork]
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	for _, before := range blocks[:ingesttest.CrossingFork] {
		if err := f.Add(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	history, number, err := f.Locate(t.Context(), block.ParentHash())
	if err != nil {
		t.Fatal(err)
	}
	parent := execute.Parent{Header: blocks[ingesttest.CrossingFork-1].Header(), State: history.StateAt(number), Ancestors: archive.Ancestors{History: history}}
	stored := &inventedBlock{block: block, value: 777}
	runs := map[string]func(r *execute.Replay, tracer execute.Tracer) error{
		"transaction 3": func(r *execute.Replay, tracer execute.Tracer) error { return r.Trace(t.Context(), tracer) },
		"a call in its place": func(r *execute.Replay, tracer execute.Tracer) error {
			tx := block.Transactions()[3]
			return r.TraceCall(t.Context(), &execute.Message{To: tx.To(), Data: tx.Data()}, execute.CallOptions{}, tracer)
		},
	}
	for _, test := range []struct {
		stored execute.StoredBlock
		value  uint64
		index  uint
	}{
		{stored, 777, 40},
		{nil, common.BytesToHash(block.Transactions()[2].Data()[32:]).Big().Uint64(), 3}, // logs of transfers come before it
	} {
		for what, run := range runs {
			var logged []*types.Log
			hooks := &tracing.Hooks{OnLog: func(l *types.Log) { logged = append(logged, l) }}
			err = f.Executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{Stored: test.stored}, func(r *execute.Replay) error {
				if err := r.Skip(3); err != nil {
					return err
				}
				return run(r, execute.Tracer{Hooks: hooks, Stop: func(error) {}})
			})
			if err != nil {
				t.Fatal(err)
			}
			var value uint64
			var index uint
			for _, l := range logged {
				if l.Address == ingesttest.StoreContract {
					value, index = common.BytesToHash(l.Data).Big().Uint64(), l.Index
				}
			}
			if value != test.value || index != test.index {
				t.Errorf("%s logs %d as log %d, want %d as log %d", what, value, index, test.value, test.index)
			}
		}
	}
	if stored.reads != len(runs) {
		t.Errorf("the list was read %d times, want %d", stored.reads, len(runs))
	}
}

// countedState counts the accounts that are read.
type countedState struct {
	evm.State
	accounts atomic.Int64
}

func (s *countedState) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	s.accounts.Add(1)
	return s.State.Account(ctx, address)
}

// TestReplaysShareTheirStart skips transactions of a block before Amsterdam again and
// again. Only those that no replay has run are run.
func TestReplaysShareTheirStart(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	block := blocks[1]
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	if err := f.Add(t.Context(), blocks[0]); err != nil {
		t.Fatal(err)
	}
	history, number, err := f.Locate(t.Context(), block.ParentHash())
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedState{State: history.StateAt(number)}
	parent := execute.Parent{Header: blocks[0].Header(), State: counted, Ancestors: archive.Ancestors{History: history}}
	skip := func(index int) (read int64) {
		t.Helper()
		parent.Header = types.CopyHeader(parent.Header)
		parent.Header.Root[0]++ // another state, of which no read is cached
		before := counted.accounts.Load()
		err := f.Executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{Stored: &inventedBlock{block: block}}, func(r *execute.Replay) error {
			return r.Skip(index)
		})
		if err != nil {
			t.Fatal(err)
		}
		return counted.accounts.Load() - before
	}
	all := len(block.Transactions())
	for _, step := range []struct {
		index int
		runs  bool
	}{{2, true}, {2, false}, {1, false}, {3, true}, {4, true}, {5, true}, {6, true}, {7, true}, {8, true}, {9, true}, {10, true}, {10, false}, {all, true}, {all, false}, {0, false}} {
		if read := skip(step.index); (read > 0) != step.runs {
			t.Errorf("skipping %d transactions read %d accounts, runs expected: %t", step.index, read, step.runs)
		}
	}
}
