package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// ErrGenesis means that a block has no parent to be replayed on.
var ErrGenesis = errors.New("genesis is not traceable")

// Replay runs the transactions of a block again, in their order, so that they can be
// watched. It is valid during the function given to [Executor.Replay] and belongs to
// one goroutine.
//
//	r.Skip(3)       // runs transactions 0, 1 and 2 unwatched
//	r.Trace(tracer) // runs transaction 3 and calls the tracer's hooks
type Replay struct {
	run    *blockRun
	parent Parent
	block  *types.Block
	db     *stateDatabase
	next   int // index of the transaction that runs next
}

// Tracer watches a transaction or a call.
type Tracer struct {
	Hooks *tracing.Hooks
	// Stop ends the tracer's own work early; its result is then reason. It is called
	// from another goroutine when the context of the run is done.
	Stop func(reason error)
}

// ReplayOptions choose what a replay can be asked for.
type ReplayOptions struct {
	// Roots makes [Replay.Root] available, which costs reading and updating the tries.
	Roots bool
	// Senders are those of the block's transactions where they are known; nil: they are
	// recovered from the signatures.
	Senders []common.Address
}

// knownSigner is a signer for transactions whose sender is known: that of the
// transaction that runs next.
type knownSigner struct {
	types.Signer
	replay  *Replay
	senders []common.Address
}

// Sender implements types.Signer.
func (s *knownSigner) Sender(*types.Transaction) (common.Address, error) {
	return s.senders[s.replay.next], nil
}

// Replay prepares the state before the first transaction of a block, as the block's own
// system calls leave it, and gives it to use. Errors of use are returned as they are,
// but a failure to read what was needed takes their place.
func (e *Executor) Replay(ctx context.Context, parent Parent, block *types.Block, options ReplayOptions, use func(*Replay) error) error {
	if block.NumberU64() == 0 {
		return ErrGenesis
	}
	if err := e.knowsRules(block.Header()); err != nil {
		return err
	}
	if err := e.calls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.calls.Release(1)
	db := newDatabase(ctx, parent, !options.Roots)
	statedb, err := state.New(parent.Header.Root, db)
	if err != nil {
		return fmt.Errorf("open state of block %d: %w", parent.Header.Number, err)
	}
	run, err := e.beginRun(ctx, parent, block.Header(), statedb, &db.readFailure)
	if err == nil {
		defer run.evm.Release()
		run.hash = block.Hash()
		r := &Replay{run: run, parent: parent, block: block, db: db}
		if options.Senders != nil {
			run.signer = &knownSigner{Signer: run.signer, replay: r, senders: options.Senders}
		}
		err = use(r)
	}
	if failed := db.failure(); failed != nil && ctx.Err() == nil {
		return fmt.Errorf("replay block %d: read what it needs: %w", block.NumberU64(), failed)
	}
	return err
}

// Block is the block that is replayed. It must not be changed.
func (r *Replay) Block() *types.Block { return r.block }

// Next is the index of the transaction that runs next.
func (r *Replay) Next() int { return r.next }

// Skip runs the transactions before the one with that index without watching them.
func (r *Replay) Skip(index int) error {
	for ; r.next < min(index, len(r.block.Transactions())); r.next++ {
		if err := r.run.apply(r.block.Transactions()[r.next]); err != nil {
			return err
		}
	}
	return nil
}

// Trace runs the next transaction under a tracer. When ctx, which must come from that of
// the replay, is done first, the tracer is stopped and its result says why.
func (r *Replay) Trace(ctx context.Context, tracer Tracer) error {
	tx := r.block.Transactions()[r.next]
	message, err := core.TransactionToMessage(tx, r.run.signer, r.run.header.BaseFee)
	if err != nil {
		return fmt.Errorf("transaction %d [%x]: %w", r.next, tx.Hash(), err)
	}
	statedb := r.run.state.StateDB
	r.run.state.message = message
	watched := &watchedState{StateDB: state.NewHookedState(statedb, tracer.Hooks), colliding: r.run.state}
	machine := vm.NewEVM(r.run.evm.Context, watched, r.run.executor.config, vm.Config{Tracer: tracer.Hooks, NoBaseFee: true})
	defer machine.Release()
	machine.SetJumpDestCache(r.run.executor.jumpDests)
	defer stopWhenDone(ctx, tracer, machine)()

	statedb.SetTxContext(tx.Hash(), r.next, uint32(r.next+1))
	pool := core.NewGasPool(message.GasLimit)
	_, _, err = core.ApplyTransactionWithEVM(ctx, message, pool, statedb, r.run.header.Number, r.run.hash, r.run.header.Time, tx, machine)
	if err != nil {
		return fmt.Errorf("tracing failed: %w", err)
	}
	r.next++
	return nil
}

// Root is the state root after the transactions that have run. The replay must have been
// asked for roots.
func (r *Replay) Root() common.Hash {
	return r.run.state.IntermediateRoot(r.run.evm.GetRules())
}

// stopWhenDone stops a run, and its tracer with the reason, when ctx is done. The
// function that it returns ends that.
func stopWhenDone(ctx context.Context, tracer Tracer, machine *vm.EVM) (end func() bool) {
	return context.AfterFunc(ctx, func() {
		tracer.Stop(context.Cause(ctx))
		machine.Cancel()
	})
}

// watchedState is the state of a transaction that is traced: it tells the tracer of
// changes, and treats addresses that have storage alone as [collidingState] does.
type watchedState struct {
	vm.StateDB
	colliding *collidingState
}

// GetNonce implements vm.StateDB.
func (s *watchedState) GetNonce(address common.Address) uint64 { return s.colliding.GetNonce(address) }
