package execute

import (
	"context"

	"ashlar/evm"
	"ashlar/evm/execute/precompiled"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"golang.org/x/sync/semaphore"
)

// asideWorker runs transactions aside, one after the other. It belongs to one goroutine.
type asideWorker struct {
	*asideRun
	machine   *machine
	touched   *touchedState                 // nil unless the paths to what is read are needed
	written   map[common.Hash][]common.Hash // slots by account, if the paths to what is written are needed
	contracts *precompiled.Set
	db        *stateDatabase
	senders   *knownSigner // nil: they are recovered
	before    func(index int) state.Reader
	exact     bool
	canceled  func() bool // ends the wait for the end of the context
}

func (a *asideRun) newWorker(known knownSteps) *asideWorker {
	header := a.block.Header()
	w := &asideWorker{asideRun: a, exact: known.exact()}
	parent := a.parent
	if a.paths == readPaths {
		w.touched = &touchedState{State: parent.State}
		parent.State = w.touched
	}
	w.db = newDatabase(a.ctx, parent, true)
	w.db.reads = a.reads
	w.machine = a.executor.newMachine(a.ctx, a.parent, header, &w.db.readFailure)
	w.contracts = precompiled.For(a.ctx, a.executor.rules(header))
	w.machine.evm.SetPrecompiles(w.contracts.Contracts)
	w.canceled = context.AfterFunc(a.ctx, w.machine.evm.Cancel)
	if a.options.Senders != nil {
		w.senders = &knownSigner{Signer: w.machine.signer, senders: a.options.Senders}
		w.machine.signer = w.senders
	}
	w.before = w.states(known)
	return w
}

// states returns the function that returns the state before a transaction.
func (w *asideWorker) states(known knownSteps) func(index int) state.Reader {
	before := &stateReader{db: w.db}
	if known.list != nil {
		list, err := splitList(known.list)
		if err != nil {
			w.db.fail(err)
		}
		return func(index int) state.Reader {
			return presentReader{&listReader{Reader: before, list: list, step: index + 1, fail: w.db.fail}}
		}
	}
	if known.changes != nil {
		return func(index int) state.Reader {
			return &changedReader{Reader: before, ctx: w.ctx, changes: known.changes, step: index, failed: &w.db.readFailure}
		}
	}
	return func(int) state.Reader { return before }
}

func (w *asideWorker) release() {
	w.canceled()
	w.contracts.Release()
	w.machine.release()
}

// step runs the transaction at an index, or the system calls, and reads the paths to what was read.
func (w *asideWorker) step(index int, gas *semaphore.Weighted, limit int64) {
	w.written = nil
	if index == systemCalls {
		w.callSystem()
	} else {
		w.transact(index, gas, limit)
	}
	slots := w.written
	if w.touched != nil {
		slots = w.touched.take()
	}
	if len(slots) > 0 && w.ctx.Err() == nil {
		w.parent.Ahead.ReadPaths(w.ctx, slots)
	}
}

func (w *asideWorker) callSystem() {
	statedb, err := state.NewWithReader(w.parent.Header.Root, w.db, &stateReader{db: w.db})
	if err == nil {
		w.machine.use(statedb)
		w.machine.before()
	}
}

// transact runs the transaction at an index.
func (w *asideWorker) transact(index int, gas *semaphore.Weighted, limit int64) {
	tx, err := w.block.Transaction(index)
	if err != nil {
		return
	}
	weight := int64(min(tx.Gas(), uint64(limit)))
	if gas.Acquire(w.ctx, weight) != nil {
		return
	}
	defer gas.Release(weight)
	if w.senders != nil {
		w.senders.next = index
	}
	statedb, err := state.NewWithReader(w.parent.Header.Root, w.db, w.before(index))
	if err != nil {
		return
	}
	seen := w.machine.use(statedb)
	message, err := w.machine.message(seen, tx, common.Hash{}, index)
	if err != nil {
		return
	}
	if !w.exact {
		statedb.SetNonce(message.From, message.Nonce, tracing.NonceChangeUnspecified)
		if cost, overflow := uint256.FromBig(tx.Cost()); !overflow && statedb.GetBalance(message.From).Lt(cost) {
			statedb.AddBalance(message.From, cost, tracing.BalanceChangeUnspecified)
		}
	}
	if w.paths == writePaths {
		seen.changes = newChangeRecorder(statedb)
	}
	_, _ = core.ApplyMessage(w.machine.evm, message, core.NewGasPool(w.block.Header().GasLimit)) // see asideRun
	w.written = seen.changes.mayHaveChanged()
}

// touchedState is a state that records which accounts and slots are read of it. It belongs to one goroutine.
type touchedState struct {
	evm.State
	slots map[common.Hash][]common.Hash // by account
}

// take returns what was read since the last time.
func (s *touchedState) take() map[common.Hash][]common.Hash {
	taken := s.slots
	s.slots = nil
	return taken
}

func (s *touchedState) add(address common.Hash, slots ...common.Hash) {
	if s.slots == nil {
		s.slots = make(map[common.Hash][]common.Hash)
	}
	s.slots[address] = append(s.slots[address], slots...)
}

// Account implements [evm.State].
func (s *touchedState) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	s.add(address)
	return s.State.Account(ctx, address)
}

// Slot implements [evm.State].
func (s *touchedState) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	s.add(address, slot)
	return s.State.Slot(ctx, address, slot)
}
