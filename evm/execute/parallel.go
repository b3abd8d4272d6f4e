package execute

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// parallelRun runs a block that arrived with its access list (EIP-7928). The list
// says what each transaction changes, so every transaction can start at once, on the
// parent's state with the changes of the transactions before it laid over:
//
//	list:        tx 1: balance of A = 7      tx 3: balance of A = 2
//	tx 3 reads:  balance of A = 7
//
// Each transaction records what it accesses. If the merged records equal the list,
// the list was right, and so was everything that was read from it.
type parallelRun struct {
	executor *Executor
	parent   Parent
	block    *types.Block
	db       *stateDatabase
	base     state.Reader // the parent's state; for concurrent use
	list     *bal.Lookup

	before *bal.ConstructionBlockAccessList // of the system calls before the transactions
	ran    []parallelTransaction
}

// parallelTransaction is a transaction that has run by itself.
type parallelTransaction struct {
	*transaction
	gas *core.GasPool // with the gas of this transaction only
}

// executeParallel runs a block from its access list, which [Executor.VerifyBody] has
// checked. An error does not yet speak against the block: the list may be wrong, and
// then what the transactions read from it was wrong as well.
func (e *Executor) executeParallel(ctx context.Context, parent Parent, block *types.Block) (*Executed, error) {
	db := newDatabase(ctx, parent, true)
	db.newRoot = block.Root()
	list, workers := block.AccessList(), runtime.GOMAXPROCS(0)
	base, stop := state.NewBlockExecutionReader(&stateReader{db: db}, accessedSlots(list), workers)
	defer stop()
	p := &parallelRun{
		executor: e, parent: parent, block: block, db: db, base: base, list: list.Lookup(),
		ran: make([]parallelTransaction, len(block.Transactions())),
	}
	after, err := state.NewWithReader(parent.Header.Root, db, base)
	if err != nil {
		return nil, err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return after.ApplyBlockAccessList(list) })
	var next atomic.Int64
	for range workers {
		group.Go(func() error { return p.work(inner, &next) })
	}
	if err := group.Wait(); err != nil {
		return nil, p.failure(err)
	}
	ran, err := p.gather(ctx)
	if err != nil {
		return nil, p.failure(err)
	}
	if failed := db.failure(); failed != nil {
		return nil, p.failure(nil)
	}
	return e.finishExecution(block, after, db, ran)
}

// failure is the error of a run: that of reading the state, if any, else err.
func (p *parallelRun) failure(err error) error {
	if failed := p.db.failure(); failed != nil {
		return fmt.Errorf("execute block %d: read what it needs: %w", p.block.NumberU64(), failed)
	}
	return err
}

// work takes one step after the other until none is left. Step 0 are the system
// calls before the transactions, step i is transaction i-1.
func (p *parallelRun) work(ctx context.Context, next *atomic.Int64) error {
	m := p.executor.newMachine(ctx, p.parent, p.block.Header(), &p.db.readFailure)
	defer m.evm.Release()
	m.hash = p.block.Hash()
	for {
		step := int(next.Add(1)) - 1
		if step > len(p.ran) || ctx.Err() != nil {
			return ctx.Err()
		}
		statedb, err := p.stateBefore(step)
		if err != nil {
			return err
		}
		seen := m.use(statedb)
		if step == 0 {
			p.before = m.before()
			continue
		}
		gas := core.NewGasPool(p.block.GasLimit())
		ran, err := m.transact(seen, gas, p.block.Transactions()[step-1], step-1)
		if err != nil {
			return err
		}
		p.ran[step-1] = parallelTransaction{ran, gas}
	}
}

// stateBefore is the state before a step, as the access list tells it.
func (p *parallelRun) stateBefore(step int) (*state.StateDB, error) {
	return state.NewWithReader(p.parent.Header.Root, p.db, state.NewReaderWithBlockLevelAccessList(p.base, p.list, step))
}

// gather puts together what the steps did, in the order of the block, and does what
// comes after its transactions.
func (p *parallelRun) gather(ctx context.Context) (*outcome, error) {
	r := &blockRun{
		machine: p.executor.newMachine(ctx, p.parent, p.block.Header(), &p.db.readFailure),
		gas:     core.NewGasPool(p.block.GasLimit()),
		list:    p.before,
	}
	defer r.evm.Release()
	logs := uint(0)
	for i, ran := range p.ran {
		limit := p.block.Transactions()[i].Gas()
		if err := r.gas.CheckGasAmsterdam(min(limit, params.MaxTxGas), limit); err != nil {
			return nil, err
		}
		receipt := ran.receipt
		if err := r.gas.ChargeGasAmsterdam(ran.gas.CumulativeExecution(), ran.gas.CumulativeState(), receipt.GasUsed); err != nil {
			return nil, err
		}
		receipt.CumulativeGasUsed = r.gas.CumulativeUsed()
		for _, log := range receipt.Logs {
			log.Index = logs
			logs++
		}
		r.add(ran.transaction)
	}
	statedb, err := p.stateBefore(len(p.ran) + 1)
	if err != nil {
		return nil, err
	}
	r.state = r.use(statedb)
	return r.finish(p.block.Body())
}

// accessedSlots are the accounts of a list and the slots that are read or written of
// each, to be prefetched.
func accessedSlots(list *bal.BlockAccessList) map[common.Address][]common.Hash {
	accessed := make(map[common.Address][]common.Hash, len(*list))
	for _, account := range *list {
		slots := make([]common.Hash, 0, len(account.StorageReads)+len(account.StorageChanges))
		for _, slot := range account.StorageReads {
			slots = append(slots, slot.Bytes32())
		}
		for _, changes := range account.StorageChanges {
			slots = append(slots, changes.Slot.Bytes32())
		}
		accessed[account.Address] = slots
	}
	return accessed
}
