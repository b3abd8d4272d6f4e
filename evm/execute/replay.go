package execute

import (
	"context"
	"errors"
	"fmt"

	"ashlar/evm/execute/precompiled"

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
//	r.Skip(3)       // transactions 0, 1 and 2 are not watched
//	r.Trace(tracer) // runs transaction 3 and calls the tracer's hooks
type Replay struct {
	run       *blockRun
	contracts *precompiled.Set
	parent    Parent
	block     Block
	db        *stateDatabase
	aside     *asideRun    // nil if reads take no round trips
	known     *knownSigner // nil: senders are recovered
	next      int          // index of the transaction that runs next
	begun     bool         // the block's own system calls have run, or been skipped

	stored  StoredBlock   // nil: all transactions run, in every replay
	list    *encodedList  // of the block, once it has been read
	changes StoredChanges // of the block, once they have been read; nil: they are not stored
	asked   bool          // they have been read
	jumped  int           // the transactions before this index have not run, though the state is the one after them
	logs    *uint64       // that these have; nil: not read yet

	receipt types.Receipt // what tracers are told of the transaction that has run
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
	// Stored is what an earlier execution of the block has left; nil: nothing. With an
	// access list or changes, transactions that are skipped need not run.
	Stored StoredBlock
}

// knownSigner is a signer for transactions whose sender is known. A transaction refers to
// the last signer that it was given to, and may be kept for longer than the replay, to
// which the signer therefore does not refer.
type knownSigner struct {
	types.Signer
	senders []common.Address
	next    int // index of the transaction that is asked about
}

// Sender implements types.Signer.
func (s *knownSigner) Sender(*types.Transaction) (common.Address, error) {
	return s.senders[s.next], nil
}

// Replay gives a block to use, before its first transaction. Errors of use are returned as they are,
// but a failure to read what was needed takes their place.
func (e *Executor) Replay(ctx context.Context, parent Parent, block Block, options ReplayOptions, use func(*Replay) error) error {
	header := block.Header()
	if header.Number.Sign() == 0 {
		return ErrGenesis
	}
	if err := e.knowsRules(header); err != nil {
		return err
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.calls.Release(1)
	aside, ctx := e.newAsideRun(ctx, parent, block, options)
	db := newDatabase(ctx, parent, !options.Roots)
	if root := parent.Header.Root; db.keys == nil && db.named == nil {
		db.reads = e.reads.of(root)
		defer e.reads.added(root, db.reads)
	}
	defer aside.stop() // before what was read is counted
	statedb, err := state.New(parent.Header.Root, db)
	if err != nil {
		return fmt.Errorf("open state of block %d: %w", parent.Header.Number, err)
	}
	run := e.newRun(ctx, parent, header, statedb, &db.readFailure)
	defer run.release()
	run.hash = block.Hash()
	contracts := precompiled.For(ctx, e.rules(header))
	defer contracts.Release()
	run.evm.SetPrecompiles(contracts.Contracts)
	r := &Replay{run: run, contracts: contracts, parent: parent, block: block, db: db, aside: aside}
	if aside != nil {
		aside.reads = db.reads
		if options.Roots {
			aside.paths = writePaths
		}
		db.wasRead = r.wasRead
	}
	if !options.Roots {
		r.stored = options.Stored
	}
	if options.Senders != nil {
		r.known = &knownSigner{Signer: run.signer, senders: options.Senders}
		run.signer = r.known
	}
	err = use(r)
	if failed := db.failure(); failed != nil && ctx.Err() == nil {
		return fmt.Errorf("replay block %d: read what it needs: %w", header.Number, failed)
	}
	return err
}

// wasRead is called after each read of the state that may have waited.
func (r *Replay) wasRead() {
	running := r.next
	if !r.begun {
		running = systemCalls
	}
	r.aside.waited(running)
}

// Block is the block that is replayed.
func (r *Replay) Block() Block { return r.block }

// Next is the index of the transaction that runs next.
func (r *Replay) Next() int { return r.next }

// Expect says that the transactions from first up to but without end are going to be traced. Where the reads of the state take
// round trips, those that they need are then made side by side. It is called before the first Skip or Trace, and may be
// called several times.
func (r *Replay) Expect(first, end int) { r.aside.expect(first, end) }

// RanAside reports whether reads of the state have waited for round trips so often that transactions also run aside, or would if
// there were more.
func (r *Replay) RanAside() bool { return r.aside != nil && r.aside.begun.Load() }

// Skip goes to the transaction with that index. The ones before it run without being
// watched, or not at all if the state that they leave is known: from the stored access
// list or changes, or from another replay of the block.
func (r *Replay) Skip(index int) error {
	defer context.AfterFunc(r.run.ctx, r.run.evm.Cancel)()
	if err := r.skip(min(index, r.block.Len())); err != nil {
		return err
	}
	return r.run.ctx.Err() // the last transaction may have been cut short
}

func (r *Replay) skip(index int) error {
	switch {
	case index <= r.next:
		return nil
	case r.stored == nil:
		return r.advance(index)
	case r.run.header.BlockAccessListHash == nil:
		return r.skipChanges(index)
	}
	if r.list == nil {
		encoded, err := r.stored.AccessList(r.run.ctx)
		if err != nil {
			return err
		}
		if r.list, err = splitList(encoded); err != nil {
			return fmt.Errorf("access list of block %d: %w", r.run.header.Number, err)
		}
	}
	return r.jumpOver(index, r.list)
}

// skipChanges is skip for a block without an access list.
func (r *Replay) skipChanges(index int) (err error) {
	if !r.asked {
		if r.changes, err = r.stored.Changes(r.run.ctx); err != nil {
			return err
		}
		r.asked = true
	}
	if r.changes != nil {
		return r.jump(index, func(before state.Reader) state.Reader {
			return &changedReader{Reader: before, ctx: r.run.ctx, changes: r.changes, step: index, failed: &r.db.readFailure}
		})
	}
	if r.run.executor.RootInline(r.run.header) {
		return r.advance(index) // what is cached cannot say that whole storages are gone
	}
	return r.skipCached(index)
}

// advance runs the transactions before the one with that index.
func (r *Replay) advance(index int) error {
	r.aside.expect(r.next, index)
	r.begin()
	for ; r.next < index; r.next++ {
		if err := r.advanceOne(); err != nil {
			return err
		}
	}
	return nil
}

// advanceOne runs the next transaction, which the caller then counts.
func (r *Replay) advanceOne() error {
	tx, err := r.block.Transaction(r.next)
	if err != nil {
		return err
	}
	r.place()
	return r.run.advance(r.run.state, r.run.gas, tx, r.next)
}

// place sets which transaction the signer is asked about: the one that runs next.
func (r *Replay) place() {
	if r.known != nil {
		r.known.next = r.next
	}
}

// begin makes the block's own system calls, unless they have been made or skipped.
func (r *Replay) begin() {
	if !r.begun {
		r.run.list, r.begun = r.run.before(), true
	}
}

// jumpOver goes to the transaction with that index by lists of changes, the oldest first.
func (r *Replay) jumpOver(index int, lists ...*encodedList) error {
	return r.jump(index, func(reader state.Reader) state.Reader {
		for _, list := range lists {
			reader = presentReader{&listReader{Reader: reader, list: list, step: index + 1, fail: r.db.fail}}
		}
		return reader
	})
}

// jump makes the state the one before the transaction with that index. at returns it, given the
// state before the block.
func (r *Replay) jump(index int, at func(before state.Reader) state.Reader) error {
	root := r.parent.Header.Root
	reader, err := r.db.Reader(root)
	if err != nil {
		return err
	}
	statedb, err := state.NewWithReader(root, r.db, at(reader))
	if err != nil {
		return err
	}
	r.run.state, r.next, r.begun = r.run.use(statedb), index, true
	r.jumped, r.logs = index, nil
	return nil
}

// presentReader is a state without empty accounts: a list has the changes of accounts
// that are gone as well.
type presentReader struct{ state.Reader }

// Account implements state.Reader.
func (r presentReader) Account(address common.Address) (*types.StateAccount, error) {
	account, err := r.Reader.Account(address)
	if account != nil && isEmpty(account) {
		account = nil
	}
	return account, err
}

// numbered returns hooks that number the logs as in the block, although the transactions
// with the first ones have not run.
func (r *Replay) numbered(hooks *tracing.Hooks) *tracing.Hooks {
	if r.jumped == 0 || hooks.OnLog == nil {
		return hooks
	}
	numbered := *hooks
	numbered.OnLog = func(log *types.Log) {
		moved := *log
		moved.Index += r.logsBefore()
		hooks.OnLog(&moved)
	}
	return &numbered
}

// logsBefore returns the number of logs of the transactions that have not run. It is read when it is needed: few tracers
// look at logs.
func (r *Replay) logsBefore() uint {
	if r.logs == nil {
		logs, err := r.stored.LogsBefore(r.run.ctx, r.jumped)
		if err != nil {
			r.db.fail(err)
		}
		r.logs = &logs
	}
	return uint(*r.logs)
}

// Trace runs the next transaction under a tracer. When ctx, which must come from that of
// the replay, is done first, the tracer is stopped and its result says why. A transaction that
// cannot be run is a [*CallError]: the block may come from a client.
func (r *Replay) Trace(ctx context.Context, tracer Tracer) error {
	r.begin()
	tx, err := r.block.Transaction(r.next)
	if err != nil {
		return err
	}
	r.place()
	message, err := core.TransactionToMessage(tx, r.run.signer, r.run.header.BaseFee)
	if err != nil {
		return callErrorf("tracing failed: transaction %d [%x]: %w", r.next, tx.Hash(), err)
	}
	seen, machine, hooks := r.run.state, r.run.evm, r.numbered(tracer.Hooks)
	seen.message = message
	seen.SetTxContext(common.Hash{}, r.next, uint32(r.next+1)) // the hash would only name its logs
	machine.StateDB = &watchedState{StateDB: state.NewHookedState(seen.StateDB, hooks), colliding: seen}
	machine.Config = vm.Config{Tracer: hooks, NoBaseFee: true}
	r.contracts.Until(ctx)
	stopped := stopWhenDone(ctx, tracer, machine)
	err = r.apply(machine, message, tx)
	r.contracts.Until(r.run.ctx)
	machine.StateDB, machine.Config = seen, vm.Config{}
	if !stopped() {
		// A canceled EVM stays so.
		r.run.evm = r.run.executor.newEVM(machine.Context)
		r.run.evm.SetPrecompiles(r.contracts.Contracts)
		r.run.evm.StateDB = seen
		machine.Release()
	}
	if err != nil {
		return callErrorf("tracing failed: %w", err)
	}
	r.next++
	return nil
}

// apply runs a transaction on an EVM with a tracer. It takes the place of
// [core.ApplyTransactionWithEVM], which also makes what a receipt has besides the gas. No
// tracer asks for that, or keeps the receipt.
func (r *Replay) apply(machine *vm.EVM, message *core.Message, tx *types.Transaction) error {
	hooks := machine.Config.Tracer
	if hooks.OnTxStart != nil {
		env := machine.GetVMContext()
		env.StateDB = r.run.state.StateDB // without the nonces that only the EVM is to see, see collidingState
		hooks.OnTxStart(env, tx, message.From)
	}
	var receipt *types.Receipt
	result, err := core.ApplyMessage(machine, message, core.NewGasPool(message.GasLimit))
	if err == nil {
		machine.StateDB.Finalise(machine.GetRules())
		receipt = &r.receipt
		receipt.Type, receipt.Status, receipt.GasUsed = tx.Type(), types.ReceiptStatusSuccessful, result.UsedGas
		if result.Failed() {
			receipt.Status = types.ReceiptStatusFailed
		}
	}
	if hooks.OnTxEnd != nil {
		hooks.OnTxEnd(receipt, err)
	}
	return err
}

// Root is the state root after the transactions that have run. The replay must have been
// asked for roots.
func (r *Replay) Root() common.Hash {
	r.begin()
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
