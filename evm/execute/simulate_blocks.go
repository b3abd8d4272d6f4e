package execute

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"ashlar/evm/execute/precompiled"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
)

const (
	// MaxSimulatedBlocks is the highest number of blocks that one simulation makes,
	// those that fill gaps included.
	MaxSimulatedBlocks = 256

	// simulationGas is what all calls of a simulation may use together.
	simulationGas = 50_000_000

	// simulatedBlockTime is how many seconds a block comes after its parent where its
	// time is not given.
	simulatedBlockTime = 12
)

// The kinds of simulations that are refused.
var (
	ErrSimulatedNumber = errors.New("block numbers must be in order")
	ErrSimulatedTime   = errors.New("block timestamps must be in order")
	ErrSimulatedBlocks = errors.New("too many blocks")
	ErrSimulatedGas    = errors.New("block gas limit reached")
	ErrSimulatedWork   = errors.New("difficulty override is not allowed after the merge")
)

// BlockCalls is a block to be simulated: its calls, and how it and the state before it
// differ from what follows from its parent.
type BlockCalls struct {
	Block       BlockOverrides
	BeaconRoot  *common.Hash
	Withdrawals types.Withdrawals
	State       StateOverrides
	Calls       []*Message
}

// SimulationOptions choose how calls are simulated.
type SimulationOptions struct {
	Transfers bool // transfers of ether are shown as logs
	Validate  bool // calls must pay, and have the right nonces
	// SideBySide is for states whose reads take round trips: storage tries are read by several
	// goroutines.
	SideBySide bool
}

// SimulatedBlock is a block that might follow.
type SimulatedBlock struct {
	Block   *types.Block
	Senders []common.Address
	Calls   []SimulatedCall
}

// SimulatedCall is the result of a call.
type SimulatedCall struct {
	Output           []byte
	Logs             []*types.Log
	GasUsed, MaxUsed uint64 // MaxUsed is before refunds
	Err              error  // a [*RevertError], or why it failed; nil if it succeeded
}

// InvalidCallError means that a simulated call cannot be included in its block.
type InvalidCallError struct{ Err error }

func (e *InvalidCallError) Error() string { return e.Err.Error() }
func (e *InvalidCallError) Unwrap() error { return e.Err }

// SimulateBlocks runs blocks of calls that would follow the parent, each on what those
// before it left, and gives each block to done when it is made.
func (e *Executor) SimulateBlocks(ctx context.Context, parent Parent, blocks []BlockCalls, options SimulationOptions, done func(*SimulatedBlock) error) error {
	blocks, err := withGapsFilled(parent.Header, blocks)
	if err != nil {
		return err
	}
	return (&CallOptions{}).limit(ctx, func(ctx context.Context) error {
		if err := e.enter(ctx); err != nil {
			return err
		}
		defer e.calls.Release(1)
		s := &blockSimulation{
			ctx: ctx, executor: e, options: options, gas: min(simulationGas, e.maxCallGas),
			db: newDatabase(ctx, parent, false),
		}
		s.db.tries = newSimulatedTries(s.db, options.SideBySide)
		defer s.db.tries.roots.Borrow()()
		s.chain = &simulatedChain{chainReader: &chainReader{ctx: ctx, config: e.config, engine: e.engine, parent: parent, failed: &s.db.readFailure}}
		err := s.run(parent.Header, blocks, done)
		if exceeded := s.memory.exceeded; exceeded != nil {
			return &CallError{exceeded}
		}
		if failed := s.db.failure(); failed != nil {
			return fmt.Errorf("simulate after block %d: read what it needs: %w", parent.Header.Number, failed)
		}
		return err
	})
}

// withGapsFilled sets the number and time of each block, and fills gaps in the numbers with
// blocks without calls.
func withGapsFilled(base *types.Header, blocks []BlockCalls) ([]BlockCalls, error) {
	var filled []BlockCalls
	number, time := base.Number.Uint64(), base.Time
	last := number + MaxSimulatedBlocks
	for _, block := range blocks {
		wanted := number + 1
		if block.Block.Number != nil {
			if !block.Block.Number.IsUint64() {
				return nil, ErrSimulatedBlocks
			}
			wanted = block.Block.Number.Uint64()
		}
		switch {
		case wanted <= number:
			return nil, fmt.Errorf("%w: %d <= %d", ErrSimulatedNumber, wanted, number)
		case wanted > last:
			return nil, ErrSimulatedBlocks
		}
		for number++; number < wanted; number++ {
			time += simulatedBlockTime
			filled = append(filled, BlockCalls{Block: placed(BlockOverrides{}, number, time)})
		}
		previous := time
		time += simulatedBlockTime
		if block.Block.Time != nil {
			if time = *block.Block.Time; time <= previous {
				return nil, fmt.Errorf("%w: %d <= %d", ErrSimulatedTime, time, previous)
			}
		}
		block.Block = placed(block.Block, number, time)
		filled = append(filled, block)
	}
	return filled, nil
}

// blockSimulation makes blocks one after the other. It belongs to one goroutine.
type blockSimulation struct {
	ctx      context.Context
	executor *Executor
	options  SimulationOptions
	gas      uint64 // that is left for all calls
	db       *stateDatabase
	state    *state.StateDB
	memory   memoryMeter // of what state reads, and of logs
	chain    *simulatedChain
}

func (s *blockSimulation) run(parent *types.Header, blocks []BlockCalls, done func(*SimulatedBlock) error) (err error) {
	reader := &simulationReader{newAccountMeter(s.db, &s.memory)}
	if s.state, err = state.NewWithReader(parent.Root, s.db, reader); err != nil {
		return fmt.Errorf("open state of block %d: %w", parent.Number, err)
	}
	// A member that is not overridden is that of the header before it was completed:
	// the fee recipient and the gas limit go on, the base fee does not.
	draft := parent
	for i := range blocks {
		if draft, err = s.draft(draft, &blocks[i]); err != nil {
			return err
		}
		var simulated *SimulatedBlock
		if err := unwound(func() (err error) {
			simulated, err = s.block(parent, draft, &blocks[i])
			return err
		}); err != nil {
			return err
		}
		if s.memory.exceeded != nil {
			return errAborted
		}
		parent = simulated.Block.Header()
		s.chain.add(simulated.Block.Hash(), parent)
		if err := done(simulated); err != nil {
			return err
		}
	}
	return nil
}

// draft makes the header of a block as far as it is known before its parent has run.
func (s *blockSimulation) draft(before *types.Header, block *BlockCalls) (*types.Header, error) {
	config, number, time := s.executor.config, block.Block.Number.ToBig(), *block.Block.Time
	header := &types.Header{
		UncleHash: types.EmptyUncleHash, ReceiptHash: types.EmptyReceiptsHash, TxHash: types.EmptyTxsHash,
		Number: number, Time: time, Coinbase: before.Coinbase, GasLimit: before.GasLimit, Difficulty: before.Difficulty,
	}
	if config.IsPostMerge(number.Uint64(), time) {
		header.Difficulty = new(big.Int)
	}
	if block.Block.Difficulty != nil {
		if header.Difficulty.Sign() == 0 {
			return nil, fmt.Errorf("block %d: %w", number, ErrSimulatedWork)
		}
		header.Difficulty = block.Block.Difficulty.ToBig()
	}
	if unknownRules(config, s.executor.rules(header)) {
		return nil, fmt.Errorf("block %d: %w", number, ErrUnknownFork)
	}
	if config.IsShanghai(number, time) {
		header.WithdrawalsHash = &types.EmptyWithdrawalsHash
	}
	if config.IsCancun(number, time) {
		header.ParentBeaconRoot = new(common.Hash)
		if block.BeaconRoot != nil {
			header.ParentBeaconRoot = block.BeaconRoot
		}
	}
	if before.SlotNumber != nil {
		slot := *before.SlotNumber + 1
		header.SlotNumber = &slot
	}
	overrides := &block.Block
	if overrides.GasLimit != nil {
		header.GasLimit = *overrides.GasLimit
	}
	if overrides.FeeRecipient != nil {
		header.Coinbase = *overrides.FeeRecipient
	}
	if overrides.PrevRandao != nil {
		header.MixDigest = *overrides.PrevRandao
	}
	if overrides.BaseFeePerGas != nil {
		header.BaseFee = overrides.BaseFeePerGas.ToBig()
	}
	return header, nil
}

// complete gives a header what follows from its parent. Without validation calls need
// not pay a base fee.
func (s *blockSimulation) complete(parent, header *types.Header) {
	config := s.executor.config
	header.ParentHash = parent.Hash()
	if config.IsLondon(header.Number) && header.BaseFee == nil {
		header.BaseFee = new(big.Int)
		if s.options.Validate {
			header.BaseFee = eip1559.CalcBaseFee(config, parent)
		}
	}
	if config.IsCancun(header.Number, header.Time) {
		var excess uint64
		if config.IsCancun(parent.Number, parent.Time) {
			excess = eip4844.CalcExcessBlobGas(config, parent, header.Time)
		}
		header.ExcessBlobGas = &excess
	}
}

// block runs a block of calls.
func (s *blockSimulation) block(parent, draft *types.Header, calls *BlockCalls) (*SimulatedBlock, error) {
	config, header := s.executor.config, types.CopyHeader(draft)
	s.complete(parent, header)
	rules := s.executor.rules(header)
	contracts := vm.ActivePrecompiledContracts(rules)
	if err := calls.State.apply(s.state, contracts); err != nil {
		return nil, err
	}
	precompiled.Interruptible(s.ctx, rules, contracts)
	surroundings := core.NewEVMBlockContext(header, s.chain, nil)
	if calls.Block.BlobBaseFee != nil {
		surroundings.BlobBaseFee = calls.Block.BlobBaseFee.ToBig()
	}
	// Since Amsterdam transfers are logs in any case.
	logs := newSimulatedLogs(s.options.Transfers && !rules.IsAmsterdam, header)
	seen := &simulatedState{warmState{s.state, newWarmList()}, logs, &s.memory}
	defer seen.warm.release()
	machine := vm.NewEVM(surroundings, seen, config, vm.Config{NoBaseFee: !s.options.Validate, Tracer: logs.hooks(), EnablePreimageRecording: true})
	defer machine.Release()
	machine.SetJumpDestCache(s.executor.jumpDests)
	machine.SetPrecompiles(contracts)
	stop := afterFunc(s.ctx, machine.Cancel)
	defer stop()
	s.memory.machine = machine
	defer func() { s.memory.machine = nil }()
	r := &simulatedRun{blockSimulation: s, header: header, machine: machine, logs: logs, pool: core.NewGasPool(header.GasLimit), list: bal.NewConstructionBlockAccessList()}
	r.list.Merge(core.PreExecution(s.ctx, header.ParentBeaconRoot, parent, config, machine, header.Number, header.Time))
	for _, message := range calls.Calls {
		if err := r.call(message); err != nil {
			return nil, err
		}
	}
	return r.finish(calls.Withdrawals)
}
