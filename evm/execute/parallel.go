package execute

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// listedRun runs a block that arrived with its access list (EIP-7928). The list says what
// each transaction changes, so every transaction can start at once, on the parent's state
// with the changes of the transactions before it laid over, and the state after the block
// is known before it runs.
//
// Each transaction records what it accesses. If the merged records equal the list, the
// list was right, and so was everything that was read from it.
type listedRun struct {
	executor *Executor
	parent   Parent
	block    *types.Block
	db       *stateDatabase
	listed   *listedState

	before *bal.ConstructionBlockAccessList // of the system calls before the transactions
	ran    []parallelTransaction
}

// parallelTransaction is a transaction that has run by itself.
type parallelTransaction struct {
	*transaction
	gas *core.GasPool // with the gas of this transaction only
}

// beginListed reads what a block accesses. The block's list has passed
// [Executor.VerifyBody].
//
// An error of a listedRun does not speak against the block: the list may be wrong, and
// then what the transactions read from it was wrong as well.
func (e *Executor) beginListed(ctx context.Context, parent Parent, block *types.Block) (*listedRun, error) {
	db := newDatabase(ctx, parent, true)
	listed, err := readListed(ctx, db, *block.AccessList())
	if err != nil {
		return nil, err
	}
	return &listedRun{executor: e, parent: parent, block: block, db: db, listed: listed}, nil
}

// execute runs the transactions on that many processors.
func (p *listedRun) execute(ctx context.Context, processors int) (ran *outcome, err error) {
	if processors > 1 {
		ran, err = p.inParallel(ctx, processors)
	} else {
		ran, err = p.inOrder(ctx)
	}
	if failed := p.db.failure(); failed != nil {
		return nil, fmt.Errorf("execute block %d: read what it needs: %w", p.block.NumberU64(), failed)
	}
	return ran, err
}

// inOrder runs one transaction after the other.
func (p *listedRun) inOrder(ctx context.Context) (*outcome, error) {
	statedb, err := p.stateBefore(0)
	if err != nil {
		return nil, err
	}
	return p.executor.run(ctx, p.parent, p.block, statedb, &p.db.readFailure)
}

// inParallel runs the transactions independently of each other.
func (p *listedRun) inParallel(ctx context.Context, processors int) (*outcome, error) {
	p.ran = make([]parallelTransaction, len(p.block.Transactions()))
	var next atomic.Int64
	group, inner := errgroup.WithContext(ctx)
	for range min(processors, len(p.ran)+1) {
		group.Go(func() error { return p.work(inner, &next) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return p.gather(ctx)
}

// work takes one step after the other until none is left. Step 0 are the system
// calls before the transactions, step i is transaction i-1.
func (p *listedRun) work(ctx context.Context, next *atomic.Int64) error {
	m := p.executor.newMachine(ctx, p.parent, p.block.Header(), &p.db.readFailure)
	defer m.release()
	m.hash, m.recorder = p.block.Hash(), p.executor.newTraceRecorder(m.evm)
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

// stateBefore is the state before a step, according to the access list.
func (p *listedRun) stateBefore(step int) (*state.StateDB, error) {
	return state.NewWithReader(p.parent.Header.Root, p.db, p.listed.before(step))
}

// gather puts together what the steps did, in the order of the block, and does what
// comes after its transactions.
func (p *listedRun) gather(ctx context.Context) (*outcome, error) {
	r := &blockRun{
		machine: p.executor.newMachine(ctx, p.parent, p.block.Header(), &p.db.readFailure),
		gas:     core.NewGasPool(p.block.GasLimit()),
		list:    p.before,
		traces:  p.executor.newTraces(),
	}
	defer r.release()
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
