package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"

	"ashlar/evm/execute/precompiled"
	"ashlar/evm/execute/scratch"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// errAborted is the error of a run that was not finished. [simulation.do], or the caller whose
// context ended, replaces it with the reason.
var errAborted = errors.New("execute: the run was aborted")

// simulation is one request's block and state, in which a message can be run
// again and again. It belongs to one goroutine.
type simulation struct {
	ctx         context.Context
	executor    *Executor
	at          At
	block       vm.BlockContext
	rules       params.Rules
	contracts   *precompiled.Set        // nil until prepared, or if the call overrides state
	precompiles vm.PrecompiledContracts // each ends with ctx
	gasCap      uint64
	transaction bool // see CallOptions
	hasHash     bool // at's block has a hash for messages, whose block may follow it

	db      *stateDatabase
	base    *state.StateDB // to run on; nil: the state of at
	lasting bool           // changes of a message last; see [Executor.simulateLasting]
	state   callState
	scratch *scratch.State // below state; nil if changes last
	statedb *state.StateDB // below state; nil if they do not
	warm    *warmList      // of statedb
}

func (e *Executor) newSimulation(ctx context.Context, at At) *simulation {
	return &simulation{
		ctx: ctx, executor: e, at: at, gasCap: e.callGas(at.Header),
		db: newDatabase(ctx, Parent{State: at.State}, true),
	}
}

// release ends the use of the simulation.
func (s *simulation) release() {
	if s.scratch != nil {
		s.scratch.Release()
	}
	if s.warm != nil {
		s.warm.release()
	}
}

// do sets the simulation up and calls run. If a limit was exceeded or a read failed, do returns
// that error whatever run returned: the result of such a run means nothing.
func (s *simulation) do(options CallOptions, run func(*simulation) error) error {
	err := s.prepare(options)
	if err == nil {
		err = run(s)
	}
	if s.contracts != nil {
		s.contracts.Release()
	}
	if exceeded := s.state.memory.exceeded; exceeded != nil {
		return &CallError{exceeded}
	}
	if failed := s.db.failure(); failed != nil {
		return fmt.Errorf("call at block %d: %w", s.at.Header.Number, failed)
	}
	return err
}

func (s *simulation) prepare(options CallOptions) error {
	s.transaction = options.Transaction
	if err := s.surround(&options.Block); err != nil {
		return err
	}
	overridden, err := s.open()
	if err != nil {
		return err
	}
	return s.precompile(options.State, overridden)
}

// precompile sets the precompiled contracts to those of the rules, as far as overrides leave them
// where they are. The overrides also change a state, unless it is nil.
func (s *simulation) precompile(overrides StateOverrides, overridden overriddenState) error {
	if s.contracts != nil { // of other rules
		s.contracts.Release()
	}
	if len(overrides) == 0 {
		s.contracts = precompiled.For(s.ctx, s.rules)
		s.precompiles = s.contracts.Contracts
		return nil
	}
	s.precompiles = vm.ActivePrecompiledContracts(s.rules)
	precompiled.Interruptible(s.ctx, s.rules, s.precompiles)
	return overrides.apply(overridden, s.precompiles)
}

// open makes the state that messages see, and returns it without its memory limit.
func (s *simulation) open() (overriddenState, error) {
	if s.base == nil && !s.lasting {
		s.scratch = scratch.New(newScratchReader(s.db, &s.state.memory))
		s.state.StateDB = &scratchState{s.scratch, &s.state.memory}
		return s.scratch, nil
	}
	s.statedb = s.base
	if s.base == nil {
		statedb, err := state.NewWithReader(s.at.Header.Root, s.db, newCallReader(s.db, &s.state.memory))
		if err != nil {
			return nil, err
		}
		s.statedb = statedb
	}
	s.warm = newWarmList()
	s.state.StateDB = &warmState{StateDB: s.statedb, warm: s.warm}
	return s.statedb, nil
}

// surround makes the block that the call sees.
func (s *simulation) surround(overrides *BlockOverrides) error {
	header := s.at.Header
	author, err := s.executor.engine.Author(cmp.Or(s.at.sealed, header))
	if err != nil {
		author = common.Address{} // a block without a seal, as a genesis of clique is
	}
	s.block = vm.BlockContext{
		CanTransfer: core.CanTransfer,
		Transfer:    core.Transfer,
		GetHash:     s.blockHash,
		Coinbase:    author,
		BlockNumber: header.Number,
		Time:        header.Time,
		Difficulty:  header.Difficulty,
		BaseFee:     header.BaseFee,
		BlobBaseFee: s.executor.blobBaseFee(header),
		GasLimit:    header.GasLimit,

		CostPerStateByte: params.CostPerStateByte,
	}
	if header.SlotNumber != nil {
		s.block.SlotNum = *header.SlotNumber
	}
	if header.Difficulty.Sign() == 0 {
		s.block.Random = &header.MixDigest
	}
	overrides.apply(&s.block)
	s.rules = s.executor.config.Rules(s.block.BlockNumber, s.block.Random != nil, s.block.Time)
	if unknownRules(s.executor.config, s.rules) {
		return &CallError{ErrUnknownFork}
	}
	// A block that is moved by an override to rules that are not its own may
	// lack what they demand.
	if s.rules.IsLondon && s.block.BaseFee == nil {
		s.block.BaseFee = new(big.Int)
	}
	if s.rules.IsCancun && s.block.BlobBaseFee == nil {
		s.block.BlobBaseFee = big.NewInt(params.BlobTxMinBlobGasprice)
	}
	return nil
}

// blobBaseFee returns the price of blob gas in a block, nil before Cancun. The price is cached,
// because computing a high one takes long, and most calls are at few blocks.
func (e *Executor) blobBaseFee(header *types.Header) *big.Int {
	if header.ExcessBlobGas == nil {
		return nil
	}
	key := blobFeeKey{time: header.Time, excess: *header.ExcessBlobGas}
	fee, ok := e.blobFees.Get(key)
	if !ok {
		fee = eip4844.CalcBlobFee(e.config, header)
		e.blobFees.Add(key, fee)
	}
	return fee
}

// blobFeeKey is what the price of blob gas follows from.
type blobFeeKey struct{ time, excess uint64 }

// cachedBlobFees is how many prices are kept.
const cachedBlobFees = 1024

// blockHash answers BLOCKHASH. Blocks from the call's own on have no hash yet,
// whatever number an override gives it, unless hasHash.
func (s *simulation) blockHash(number uint64) common.Hash {
	own := s.at.Header.Number.Uint64()
	if number == own && s.hasHash {
		return s.at.Header.Hash()
	}
	if number >= own {
		return common.Hash{}
	}
	if number == own-1 {
		return s.at.Header.ParentHash
	}
	hash, err := s.at.Hashes.BlockHash(s.ctx, number)
	if err != nil {
		s.db.fail(err)
	}
	return hash
}

// run runs a message. The error says why it could not be run or was not finished; the result
// says how it ended. Its changes stay in the state.
func (s *simulation) run(message *core.Message, hooks *tracing.Hooks) (*core.ExecutionResult, error) {
	machine := s.machine(message, &s.state, hooks)
	defer machine.Release()
	stop := afterFunc(s.ctx, machine.Cancel)
	defer stop()
	var result *core.ExecutionResult
	err := s.guard(func() (err error) {
		result, err = core.ApplyMessage(machine, message, nil)
		return err
	})
	if s.ctx.Err() != nil || s.state.memory.exceeded != nil || s.db.failure() != nil {
		return nil, errAborted
	}
	return result, err
}

// machine makes the EVM that runs a message on seen, a view of the simulation's state.
// It must be released.
func (s *simulation) machine(message *core.Message, seen vm.StateDB, hooks *tracing.Hooks) *vm.EVM {
	block := s.block
	// A call that offers nothing is not to be refused for offering too little,
	// and sees no fees.
	if message.GasPrice.IsZero() && block.BaseFee != nil {
		block.BaseFee = new(big.Int)
	}
	if message.BlobGasFeeCap != nil && message.BlobGasFeeCap.IsZero() && block.BlobBaseFee != nil {
		block.BlobBaseFee = new(big.Int)
	}
	if message.GasLimit > boundedGas(s.rules) {
		hooks = (&frameMeter{memory: &s.state.memory}).watch(hooks)
	}
	hooks = s.watchCodes(message, hooks)
	machine := vm.NewEVM(block, seen, s.executor.config, vm.Config{NoBaseFee: true, Tracer: hooks, EnablePreimageRecording: true})
	machine.SetJumpDestCache(s.executor.jumpDests)
	machine.SetPrecompiles(s.precompiles)
	s.state.memory.machine = machine
	return machine
}

// try is run, and reverts the changes afterwards.
func (s *simulation) try(message *core.Message, hooks *tracing.Hooks) (*core.ExecutionResult, error) {
	before := s.state.Snapshot()
	result, err := s.run(message, hooks)
	s.state.RevertToSnapshot(before)
	s.state.memory.written = 0
	return result, err
}
