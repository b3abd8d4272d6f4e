package execute

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
)

// outcome is the result of running a block.
type outcome struct {
	senders  []common.Address
	receipts types.Receipts
	requests [][]byte                         // nil before Prague
	list     *bal.ConstructionBlockAccessList // nil before Amsterdam
	traces   *evm.Traces                      // nil if they are not recorded
	gasUsed  uint64
}

// run runs a block on the state of its parent. A failed read is reported to failed,
// which takes precedence over the error and the outcome.
func (e *Executor) run(ctx context.Context, parent Parent, block *types.Block, statedb *state.StateDB, failed *readFailure) (*outcome, error) {
	r := e.beginRun(ctx, parent, block.Header(), statedb, failed)
	defer r.release()
	r.hash = block.Hash()
	for _, tx := range block.Transactions() {
		if err := r.apply(tx); err != nil {
			return nil, err
		}
	}
	return r.finish(block.Body())
}

// machine runs the transactions and system calls of one block. It belongs to one
// goroutine, and is released after use.
type machine struct {
	ctx      context.Context
	executor *Executor
	chain    *chainReader
	evm      *vm.EVM
	header   *types.Header
	hash     common.Hash // the block's, as its logs name it
	signer   types.Signer
	recorder *traceRecorder // of transactions; nil: they are not recorded
	warm     *warmList      // of the state in use
}

func (e *Executor) newMachine(ctx context.Context, parent Parent, header *types.Header, failed *readFailure) *machine {
	chain := &chainReader{ctx: ctx, config: e.config, engine: e.engine, parent: parent, failed: failed}
	surroundings := core.NewEVMBlockContext(header, chain, nil)
	if _, records := parent.Ancestors.(recordedAncestors); records {
		surroundings.GetHash = readingHeaders(surroundings.GetHash, chain)
	}
	return &machine{
		ctx: ctx, executor: e, chain: chain, header: header, warm: newWarmList(),
		evm:    e.newEVM(surroundings),
		signer: types.MakeSigner(e.config, header.Number, header.Time),
	}
}

// newEVM makes an EVM that has no state yet. It must be released.
func (e *Executor) newEVM(block vm.BlockContext) *vm.EVM {
	evm := vm.NewEVM(block, nil, e.config, vm.Config{})
	evm.SetJumpDestCache(e.jumpDests)
	return evm
}

// release ends the use of the machine and of its state.
func (m *machine) release() {
	m.evm.Release()
	m.warm.release()
}

// use makes a state the one that the machine reads and changes, in place of the one before.
func (m *machine) use(statedb *state.StateDB) *collidingState {
	m.warm.reset()
	seen := &collidingState{warmState: warmState{StateDB: statedb, warm: m.warm}}
	m.evm.StateDB = seen
	return seen
}

// before makes the system calls that precede a block's transactions.
func (m *machine) before() *bal.ConstructionBlockAccessList {
	return core.PreExecution(m.ctx, m.header.ParentBeaconRoot, m.chain.parent.Header, m.executor.config, m.evm, m.header.Number, m.header.Time)
}

// transaction is a transaction that has run.
type transaction struct {
	sender  common.Address
	receipt *types.Receipt
	list    *bal.ConstructionBlockAccessList // nil before Amsterdam
	traces  []evm.Trace                      // nil if they are not recorded
}

// transact runs the block's transaction at an index. After an error the state and
// the gas pool are undefined until the caller restores them.
func (m *machine) transact(seen *collidingState, gas *core.GasPool, tx *types.Transaction, index int) (*transaction, error) {
	message, err := m.message(seen, tx, tx.Hash(), index)
	if err != nil {
		return nil, err
	}
	seen.recorder = m.recorder
	m.recorder.begin(m.evm)
	receipt, list, err := core.ApplyTransactionWithEVM(m.ctx, message, gas, seen.StateDB, m.header.Number, m.hash, m.header.Time, tx, m.evm)
	traces := m.recorder.end(m.evm)
	if err != nil {
		return nil, fmt.Errorf("transaction %d [%x]: %w", index, tx.Hash(), err)
	}
	return &transaction{sender: message.From, receipt: receipt, list: list, traces: traces}, nil
}

// advance runs the block's transaction at an index for its changes of the state alone.
func (m *machine) advance(seen *collidingState, gas *core.GasPool, tx *types.Transaction, index int) error {
	message, err := m.message(seen, tx, common.Hash{}, index) // the hash would only name its logs
	if err != nil {
		return err
	}
	if _, err := core.ApplyMessage(m.evm, message, gas); err != nil {
		return fmt.Errorf("transaction %d [%x]: %w", index, tx.Hash(), err)
	}
	seen.Finalise(m.evm.GetRules())
	return nil
}

// message prepares the state for the block's transaction at an index. Its logs get the hash.
func (m *machine) message(seen *collidingState, tx *types.Transaction, hash common.Hash, index int) (*core.Message, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	message, err := core.TransactionToMessage(tx, m.signer, m.header.BaseFee)
	if err != nil {
		return nil, fmt.Errorf("transaction %d [%x]: %w", index, tx.Hash(), err)
	}
	seen.message = message
	seen.SetTxContext(hash, index, uint32(index+1))
	return message, nil
}

// after does what follows a block's transactions: withdrawals, the system calls that
// return requests, and the rewards of proof of work. logs are those of all transactions.
func (m *machine) after(seen *collidingState, body *types.Body, transactions int, logs []*types.Log) ([][]byte, *bal.ConstructionBlockAccessList, error) {
	config, header := m.executor.config, m.header
	if config.IsPrague(header.Number, header.Time) {
		if err := checkDeposits(config, logs); err != nil {
			return nil, nil, err
		}
	}
	requests, list, err := core.PostExecution(m.ctx, config, header.Number, header.Time, logs, body.Withdrawals, m.evm, uint32(transactions+1))
	if err != nil {
		return nil, nil, err
	}
	m.executor.engine.Finalize(m.chain, header, seen, body)
	return requests, list, nil
}

// blockRun runs a block step by step on one state.
type blockRun struct {
	*machine
	state *collidingState
	gas   *core.GasPool

	list     *bal.ConstructionBlockAccessList // nil before Amsterdam
	senders  []common.Address
	receipts types.Receipts
	logs     []*types.Log
	traces   *evm.Traces // nil if they are not recorded
}

// beginRun does what comes before a block's transactions. The run records what the executor records.
func (e *Executor) beginRun(ctx context.Context, parent Parent, header *types.Header, statedb *state.StateDB, failed *readFailure) *blockRun {
	r := e.newRun(ctx, parent, header, statedb, failed)
	r.recorder, r.state.changes = e.newTraceRecorder(r.evm), e.recorderOf(header, statedb)
	r.list = r.before()
	r.state.changes.end(0)
	return r
}

// newRun makes a run that has yet to begin.
func (e *Executor) newRun(ctx context.Context, parent Parent, header *types.Header, statedb *state.StateDB, failed *readFailure) *blockRun {
	if e.isDAOFork(header) {
		misc.ApplyDAOHardFork(statedb)
	}
	m := e.newMachine(ctx, parent, header, failed)
	return &blockRun{machine: m, state: m.use(statedb), gas: core.NewGasPool(header.GasLimit), traces: e.newTraces()}
}

// isDAOFork reports whether a block begins with the changes of the DAO fork.
func (e *Executor) isDAOFork(header *types.Header) bool {
	return e.config.DAOForkSupport && e.config.DAOForkBlock != nil && e.config.DAOForkBlock.Cmp(header.Number) == 0
}

// apply runs the next transaction. After an error the state and the gas pool are
// undefined until the caller restores them.
func (r *blockRun) apply(tx *types.Transaction) error {
	ran, err := r.transact(r.state, r.gas, tx, len(r.receipts))
	if err != nil {
		return err
	}
	r.add(ran)
	r.state.changes.end(len(r.receipts))
	return nil
}

// add appends what a transaction did to what the ones before did.
func (r *blockRun) add(ran *transaction) {
	r.senders = append(r.senders, ran.sender)
	r.receipts = append(r.receipts, ran.receipt)
	r.logs = append(r.logs, ran.receipt.Logs...)
	r.list.Merge(ran.list)
	if r.traces != nil {
		r.traces.Add(ran.traces)
	}
}

// finish does what comes after a block's transactions.
func (r *blockRun) finish(body *types.Body) (*outcome, error) {
	requests, list, err := r.after(r.state, body, len(r.receipts), r.logs)
	if err != nil {
		return nil, err
	}
	r.list.Merge(list)
	r.executor.addRewards(r.traces, r.header, body.Uncles)
	if r.state.changes != nil {
		r.state.Finalise(r.evm.GetRules())
		r.state.changes.end(len(r.receipts) + 1)
		r.traces.Changes = r.state.changes.recorded(len(r.receipts))
	}
	return &outcome{senders: r.senders, receipts: r.receipts, requests: requests, list: r.list, traces: r.traces, gasUsed: r.gas.Used()}, nil
}
