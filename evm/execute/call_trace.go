package execute

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
)

// TraceCall runs a message call under a tracer. The tracer says how the call ended, also by a
// revert; an error means that the call was not run.
func (e *Executor) TraceCall(ctx context.Context, at At, message *Message, options CallOptions, tracer Tracer) error {
	at.sealed, at.Header = at.Header, headerForTrace(at.Header, &options.Block)
	return e.simulateLasting(ctx, at, options, func(s *simulation) error { return s.trace(ctx, message, tracer) })
}

// TraceCalls passes to run a function that runs message calls under tracers: the first on the
// state after a block, each other one on the state that the one before left. The options hold
// for all of them.
func (e *Executor) TraceCalls(ctx context.Context, at At, options CallOptions, run func(call func(context.Context, *Message, Tracer) error) error) error {
	return e.simulateLasting(ctx, at, options, func(s *simulation) error { return run(s.trace) })
}

// TraceCall runs a message call under a tracer on the state before the transaction that
// runs next. The replay is over then, as the call has changed its state.
func (r *Replay) TraceCall(ctx context.Context, message *Message, options CallOptions, tracer Tracer) error {
	tracer.Hooks = r.numbered(tracer.Hooks)
	return r.simulate(ctx, headerForTrace(r.run.header, &options.Block), options, func(s *simulation) error { return s.trace(ctx, message, tracer) })
}

// simulate calls run with a simulation in the state before the transaction that runs next. The replay is over then.
func (r *Replay) simulate(ctx context.Context, header *types.Header, options CallOptions, run func(*simulation) error) error {
	at := At{Header: header, State: r.parent.State, Hashes: replayHashes{r}, sealed: r.run.header}
	return options.limit(ctx, func(ctx context.Context) error {
		s := r.run.executor.newSimulation(ctx, at)
		defer s.release()
		r.begin()
		s.db, s.base = r.db, r.run.state.StateDB
		return s.do(options, run)
	})
}

// replayHashes finds the hashes of the blocks before a replayed one, and its own.
type replayHashes struct{ replay *Replay }

// BlockHash implements [BlockHashes].
func (h replayHashes) BlockHash(_ context.Context, number uint64) (common.Hash, error) {
	if number == h.replay.run.header.Number.Uint64() {
		return h.replay.block.Hash(), nil
	}
	return h.replay.run.evm.Context.GetHash(number), nil
}

// headerForTrace returns the header that a traced call sees. A call that is moved to the
// number after its block's, as wallets do to preview a transaction, finds the hash of
// the block under its number, as it would in the next block.
func headerForTrace(header *types.Header, overrides *BlockOverrides) *types.Header {
	next := new(big.Int).Add(header.Number, common.Big1)
	if overrides.Number == nil || overrides.Number.CmpBig(next) != 0 {
		return header
	}
	moved := types.CopyHeader(header)
	moved.ParentHash, moved.Number = header.Hash(), next
	return moved
}

// trace runs a message as if it were a transaction, under a tracer, until ctx is done, or the
// time of the simulation is over.
func (s *simulation) trace(ctx context.Context, m *Message, tracer Tracer) error {
	if s.ctx.Err() != nil {
		return errAborted
	}
	message, err := s.tracedMessage(m)
	if err != nil {
		return err
	}
	if !s.transaction {
		message.SkipExecutionGasCapCheck()
	}
	hooks := ended(tracer.Hooks)
	machine := s.machine(message, &watchedCall{callState: &s.state, hooks: hooks}, hooks)
	defer machine.Release()
	defer stopWhenDone(ctx, tracer, machine)()
	defer stopWhenDone(s.ctx, tracer, machine)()
	s.statedb.SetTxContext(common.Hash{}, 0, 1)
	pool := core.NewGasPool(message.GasLimit)
	tx := unsigned(s.executor.config.ChainID, m.priced(s.block.BaseFee), message)
	err = s.guard(func() error {
		_, _, err := core.ApplyTransactionWithEVM(s.ctx, message, pool, s.statedb, s.block.BlockNumber, common.Hash{}, s.block.Time, tx, machine)
		return err
	})
	if s.state.memory.exceeded != nil || s.db.failure() != nil {
		return errAborted
	}
	if errors.Is(err, errAborted) {
		return nil // the tracer says why it was stopped
	}
	if err != nil {
		return &CallError{fmt.Errorf("tracing failed: %w", err)}
	}
	return nil
}

// ended returns hooks that are not called at the end of a run that was unwound: there is neither a receipt
// nor an error, and some tracers of the library read the receipt then.
func ended(all *tracing.Hooks) *tracing.Hooks {
	if all.OnTxEnd == nil {
		return all
	}
	some := *all
	some.OnTxEnd = func(receipt *types.Receipt, err error) {
		if receipt != nil || err != nil {
			all.OnTxEnd(receipt, err)
		}
	}
	return &some
}

// watchedCall is the state of a call that is traced: metered, and its logs shown to the
// tracer. Other changes are not shown: none of the available tracers uses them.
type watchedCall struct {
	*callState
	hooks *tracing.Hooks
}

// AddLog implements vm.StateDB.
func (s *watchedCall) AddLog(log *types.Log) {
	s.callState.AddLog(log)
	if s.hooks.OnLog != nil && s.memory.exceeded == nil {
		s.hooks.OnLog(log)
	}
}
