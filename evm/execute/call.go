package execute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/holiman/uint256"
	"golang.org/x/sync/semaphore"
)

const (
	// DefaultCallTime is how long a call may take where its options do not say.
	DefaultCallTime = 5 * time.Second

	// callGasFactor times the gas limit of its block is the most gas that a call gets.
	callGasFactor = 10

	// defaultCallGas is the gas of a call that names none, if it may have as much: geth's
	// default. Contracts see it, and tracers show it.
	defaultCallGas = 50_000_000
)

// At is the block that a call sees around it, and in whose state it runs.
type At struct {
	Header *types.Header // not changed
	State  evm.State     // after the block
	Hashes BlockHashes

	sealed *types.Header // whose seal names the author, if Header was made from it; nil: Header
}

// BlockHashes finds the hashes of the blocks before the one that a call runs at.
type BlockHashes interface {
	// BlockHash returns the hash of the block with a number, which is below
	// that of the call's block.
	BlockHash(ctx context.Context, number uint64) (common.Hash, error)
}

// Message is a call as its sender wrote it. A member that was left out is nil; an empty list
// was not left out.
type Message struct {
	From                 common.Address
	To                   *common.Address // nil: Data creates a contract
	Gas                  *uint64         // nil: defaultCallGas
	GasPrice             *uint256.Int
	MaxFeePerGas         *uint256.Int
	MaxPriorityFeePerGas *uint256.Int
	Value                *uint256.Int
	Nonce                *uint64 // only says where AccessList expects a created contract
	Data                 []byte
	ChainID              *uint256.Int // if given, must be the chain's
	AccessList           types.AccessList
	MaxFeePerBlobGas     *uint256.Int
	BlobHashes           []common.Hash
	Authorizations       []types.SetCodeAuthorization
}

// CallOptions change what a call sees.
type CallOptions struct {
	State StateOverrides
	Block BlockOverrides
	Time  time.Duration // that the call may take; zero: DefaultCallTime
	// Transaction says that traced messages are transactions: since Amsterdam they have no more than
	// params.MaxTxGas for execution.
	Transaction bool
}

// CallError says why a call was not run or what ended it, with the message of geth. Any other
// error, except a [*RevertError] and the error of the caller's context, is a failure to read
// what the call needed.
type CallError struct{ Err error }

func (e *CallError) Error() string { return e.Err.Error() }
func (e *CallError) Unwrap() error { return e.Err }

func callErrorf(format string, args ...any) error {
	return &CallError{fmt.Errorf(format, args...)}
}

// RevertError says that a call executed REVERT.
type RevertError struct{ Data []byte }

// Error has the reason, where Data is an Error(string) or a Panic(uint256) of Solidity.
func (e *RevertError) Error() string {
	reason, err := abi.UnpackRevert(e.Data)
	if err != nil {
		return vm.ErrExecutionReverted.Error()
	}
	return vm.ErrExecutionReverted.Error() + ": " + reason
}

// Call runs a message call and returns what it returned, which the caller owns.
// Its error is a [*RevertError], a [*CallError], or a failure.
func (e *Executor) Call(ctx context.Context, at At, message *Message, options CallOptions) ([]byte, error) {
	var output []byte
	err := e.simulate(ctx, at, options, func(s *simulation) error {
		msg, err := s.message(message)
		if err != nil {
			return err
		}
		result, err := s.run(msg.SkipExecutionGasCapCheck(), nil)
		if err != nil {
			return callErrorf("err: %w (supplied gas %d)", err, msg.GasLimit)
		}
		output = result.ReturnData
		return outcomeError(result)
	})
	if err != nil {
		return nil, err
	}
	return output, nil
}

// outcomeError is the error of a call that has run, nil if it succeeded.
func outcomeError(result *core.ExecutionResult) error {
	switch {
	case errors.Is(result.Err, vm.ErrExecutionReverted):
		return &RevertError{Data: result.ReturnData}
	case result.Err != nil:
		return &CallError{result.Err}
	}
	return nil
}

// callGas is the most gas that a call at a block may have.
func (e *Executor) callGas(header *types.Header) uint64 {
	if header.GasLimit > math.MaxUint64/callGasFactor {
		return e.maxCallGas
	}
	return min(callGasFactor*header.GasLimit, e.maxCallGas)
}

// newCallPlaces bounds how many calls run at the same moment, which is what
// bounds their memory; see callMemory. More calls than processors gain no time, except where
// some wait for a disk.
func newCallPlaces() *semaphore.Weighted {
	return semaphore.NewWeighted(int64(max(4, 2*runtime.GOMAXPROCS(0))))
}

// enter waits for a place among the running calls, which e.calls.Release gives back. The
// semaphore asks for ctx's channel even if it need not wait, which costs more than a short call.
func (e *Executor) enter(ctx context.Context) error {
	if e.calls.TryAcquire(1) {
		return nil
	}
	return e.calls.Acquire(ctx, 1)
}

// simulate waits for a place, sets up the block and the state that a call sees, and calls run.
// The time limit is for all of that. run must revert the changes of a message before it runs
// the next.
func (e *Executor) simulate(ctx context.Context, at At, options CallOptions, run func(*simulation) error) error {
	return e.simulateOn(ctx, at, options, false, run)
}

// simulateLasting is simulate for messages that see what the ones before them have changed,
// or that run as transactions do.
func (e *Executor) simulateLasting(ctx context.Context, at At, options CallOptions, run func(*simulation) error) error {
	return e.simulateOn(ctx, at, options, true, run)
}

func (e *Executor) simulateOn(ctx context.Context, at At, options CallOptions, lasting bool, run func(*simulation) error) error {
	return options.limit(ctx, func(ctx context.Context) error {
		if err := e.enter(ctx); err != nil {
			return err
		}
		defer e.calls.Release(1)
		s := e.newSimulation(ctx, at)
		defer s.release()
		s.lasting = lasting
		return s.do(options, run)
	})
}

// limit ends run when the time that a call may take is over.
func (o *CallOptions) limit(caller context.Context, run func(ctx context.Context) error) error {
	limit := o.Time
	if limit == 0 {
		limit = DefaultCallTime
	}
	ctx := newCallContext(caller, limit)
	defer ctx.stop()
	err := run(ctx)
	switch {
	case caller.Err() != nil:
		return caller.Err() // nobody waits for the answer any more
	case ctx.Err() != nil:
		return callErrorf("execution aborted (timeout = %v)", limit)
	}
	return err
}
