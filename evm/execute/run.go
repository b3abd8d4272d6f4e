package execute

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// outcome is what running a block gave.
type outcome struct {
	senders  []common.Address
	receipts types.Receipts
	requests [][]byte // nil before Prague
	gasUsed  uint64
}

// run does to the state all that a block does. What cannot be read for it is
// reported to failed, which goes before its error and its outcome.
func (e *Executor) run(ctx context.Context, parent Parent, block *types.Block, statedb *state.StateDB, failed *readFailure) (*outcome, error) {
	r, err := e.beginRun(ctx, parent, block.Header(), statedb, failed)
	if err != nil {
		return nil, err
	}
	defer r.evm.Release()
	r.hash = block.Hash()
	for _, tx := range block.Transactions() {
		if err := r.apply(tx); err != nil {
			return nil, err
		}
	}
	return r.finish(block.Body())
}

// blockRun does to the state what a block does, step after step. It belongs to
// one goroutine, and its evm is released after use.
type blockRun struct {
	ctx      context.Context
	executor *Executor
	chain    *chainReader
	evm      *vm.EVM
	state    *collidingState
	header   *types.Header
	hash     common.Hash // what logs say their block is
	signer   types.Signer
	gas      *core.GasPool

	senders  []common.Address
	receipts types.Receipts
	logs     []*types.Log
}

// beginRun does what comes before a block's transactions.
func (e *Executor) beginRun(ctx context.Context, parent Parent, header *types.Header, statedb *state.StateDB, failed *readFailure) (*blockRun, error) {
	if e.config.DAOForkSupport && e.config.DAOForkBlock != nil && e.config.DAOForkBlock.Cmp(header.Number) == 0 {
		misc.ApplyDAOHardFork(statedb)
	}
	chain := &chainReader{ctx: ctx, config: e.config, engine: e.engine, parent: parent, failed: failed}
	seen := &collidingState{StateDB: statedb}
	evm := vm.NewEVM(core.NewEVMBlockContext(header, chain, nil), seen, e.config, vm.Config{})
	evm.SetJumpDestCache(e.jumpDests)
	core.PreExecution(ctx, header.ParentBeaconRoot, parent.Header, e.config, evm, header.Number, header.Time)
	return &blockRun{
		ctx: ctx, executor: e, chain: chain, evm: evm, state: seen, header: header,
		signer: types.MakeSigner(e.config, header.Number, header.Time),
		gas:    core.NewGasPool(header.GasLimit),
	}, nil
}

// apply runs one transaction. After an error the state and the gas pool are in
// no state to go on with, unless they are put back.
func (r *blockRun) apply(tx *types.Transaction) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	index := len(r.receipts)
	message, err := core.TransactionToMessage(tx, r.signer, r.header.BaseFee)
	if err != nil {
		return fmt.Errorf("transaction %d [%x]: %w", index, tx.Hash(), err)
	}
	r.state.message = message
	r.state.SetTxContext(tx.Hash(), index, uint32(index+1))
	receipt, _, err := core.ApplyTransactionWithEVM(r.ctx, message, r.gas, r.state.StateDB, r.header.Number, r.hash, r.header.Time, tx, r.evm)
	if err != nil {
		return fmt.Errorf("transaction %d [%x]: %w", index, tx.Hash(), err)
	}
	r.senders = append(r.senders, message.From)
	r.receipts = append(r.receipts, receipt)
	r.logs = append(r.logs, receipt.Logs...)
	return nil
}

// finish does what comes after a block's transactions.
func (r *blockRun) finish(body *types.Body) (*outcome, error) {
	config, header := r.executor.config, r.header
	if config.IsPrague(header.Number, header.Time) {
		if err := checkDeposits(config, r.logs); err != nil {
			return nil, err
		}
	}
	requests, _, err := core.PostExecution(r.ctx, config, header.Number, header.Time, r.logs, body.Withdrawals, r.evm, uint32(len(r.receipts)+1))
	if err != nil {
		return nil, err
	}
	r.executor.engine.Finalize(r.chain, header, r.state.StateDB, body)
	return &outcome{senders: r.senders, receipts: r.receipts, requests: requests, gasUsed: r.gas.Used()}, nil
}
