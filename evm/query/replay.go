package query

import (
	"context"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Input is a block with what is needed to execute it again.
type Input struct {
	Block   execute.Block
	Parent  execute.Parent
	Body    *archive.Body       // of the block; nil if it is not stored
	Senders []common.Address    // nil: they are recovered from the signatures
	Stored  execute.StoredBlock // nil if the block is not stored
}

// Options are those of a replay of the block.
func (i *Input) Options() execute.ReplayOptions {
	return execute.ReplayOptions{Senders: i.Senders, Stored: i.Stored}
}

// Input returns a block of the view with what is needed to execute it again. For the genesis
// block the error is [execute.ErrGenesis].
func (v *View) Input(ctx context.Context, number uint64) (Input, error) {
	if number == 0 {
		return Input{}, execute.ErrGenesis
	}
	var take func() bool
	input, err := gather(ctx, v.hasRemoteState(number-1, archive.OfState), func(ctx context.Context) (input Input, err error) {
		input, take, err = v.readInput(ctx, number)
		return input, err
	})
	if err == nil {
		err = takePrefetched(ctx, take, input.Parent.State, input.Block)
	}
	return input, err
}

// readInput reads what the execution of a block needs. take is that of prefetchBlock.
func (v *View) readInput(ctx context.Context, number uint64) (input Input, take func() bool, err error) {
	v.readInputAhead(ctx, number)
	stored, err := v.storedInput(ctx, number)
	if err != nil {
		return Input{}, nil, err
	}
	input = Input{Block: stored, Body: stored.body, Senders: stored.senders}
	if v.history.Stores(number) {
		input.Stored = storedBlock{v.history, number}
	}
	if input.Parent, err = v.parent(ctx, number-1); err != nil {
		return input, nil, err
	}
	return input, prefetchBlock(ctx, input.Parent.State, input.Block), nil
}

// storedInput returns a block of the view, and keeps it for the next time.
func (v *View) storedInput(ctx context.Context, number uint64) (*storedInput, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	pending := v.IsPending(number) // which has no hash
	if !pending {
		if input, ok := v.chain.inputs.find(header.Hash); ok {
			return input, nil
		}
	}
	body, err := v.Body(ctx, number, nil)
	if err != nil {
		return nil, err
	}
	input := newStoredInput(header, body)
	if !pending {
		v.chain.inputs.add(header.Hash, input)
	}
	return input, nil
}

// storedBlock is a block of a history. It implements [execute.StoredBlock].
type storedBlock struct {
	history *archive.History
	number  uint64
}

func (s storedBlock) AccessList(ctx context.Context) ([]byte, error) {
	return s.history.AccessList(ctx, s.number)
}

func (s storedBlock) Changes(ctx context.Context) (execute.StoredChanges, error) {
	changes, err := s.history.Changes(ctx, s.number)
	if changes == nil || err != nil {
		return nil, err
	}
	return changes, nil
}

func (s storedBlock) LogsBefore(ctx context.Context, index int) (uint64, error) {
	receipts, err := s.history.Receipts(ctx, s.number, nil)
	if err != nil {
		return 0, err
	}
	return receipts.LogsBefore(index)
}

// ParentError means that a block names a parent whose number is not the one before its own.
type ParentError struct{ Number, Parent uint64 }

func (e *ParentError) Error() string {
	return fmt.Sprintf("block %d cannot follow block %d, its parent", e.Number, e.Parent)
}

// InputOf is Input for a block that need not be in the view. Its parent must be.
func (v *View) InputOf(ctx context.Context, block *types.Block) (Input, error) {
	if block.NumberU64() == 0 {
		return Input{}, execute.ErrGenesis
	}
	number, err := v.FindBlock(ctx, block.ParentHash())
	if err != nil {
		return Input{}, err
	}
	if number+1 != block.NumberU64() {
		return Input{}, &ParentError{block.NumberU64(), number}
	}
	whole := execute.Decoded(block)
	var take func() bool
	parent, err := gather(ctx, v.hasRemoteState(number, archive.OfState), func(ctx context.Context) (execute.Parent, error) {
		parent, err := v.parent(ctx, number)
		if err == nil {
			take = prefetchBlock(ctx, parent.State, whole)
		}
		return parent, err
	})
	if err == nil {
		err = takePrefetched(ctx, take, parent.State, whole)
	}
	return Input{Block: whole, Parent: parent}, err
}

// Replay runs the transactions of a block of the view again, as
// [execute.Executor.Replay] does.
func (v *View) Replay(ctx context.Context, number uint64, options execute.ReplayOptions, use func(*execute.Replay) error) error {
	input, err := v.Input(ctx, number)
	if err != nil {
		return err
	}
	if options.Roots {
		if input.Parent, err = v.parentWithTries(ctx, number-1); err != nil {
			return err
		}
	}
	options.Senders, options.Stored = input.Senders, input.Stored
	return v.Executor().Replay(ctx, input.Parent, input.Block, options, use)
}

// replayAside runs transactions of a block of the view aside, as [execute.Executor.ReplayAside] does, all if transactions is nil. ctx must
// be one for reads that nothing waits for ([kv.Aside]). An error of a read recurs in the replay. It does nothing if other nodes
// are asked for the block or the state before it.
func (v *View) replayAside(ctx context.Context, number uint64, transactions []int) {
	if !v.history.Stores(number) || number > 0 && v.hasRemoteState(number-1, archive.OfState) {
		return
	}
	input, err := v.Input(ctx, number)
	if err != nil {
		return
	}
	if transactions == nil {
		for i := range input.Block.Len() {
			transactions = append(transactions, i)
		}
	}
	v.Executor().ReplayAside(ctx, input.Parent, input.Block, input.Options(), transactions)
}

// TraceCall calls run with a function that runs a message call under a tracer at a block of the view, as
// [execute.Executor.TraceCall] does. What a trace may take begins in run: the request has waited before.
func (v *View) TraceCall(ctx context.Context, number uint64, message *execute.Message, options execute.CallOptions, run func(execute.TraceFunc) error) error {
	at, err := v.callAt(ctx, number, message)
	if err != nil {
		return err
	}
	return run(func(ctx context.Context, tracer execute.Tracer) error {
		return v.Executor().TraceCall(ctx, at, message, options, tracer)
	})
}

// TraceCalls runs message calls one after the other at a block of the view, as
// [execute.Executor.TraceCalls] does.
func (v *View) TraceCalls(ctx context.Context, number uint64, options execute.CallOptions, run func(call func(context.Context, *execute.Message, execute.Tracer) error) error) error {
	at, err := v.CallAt(ctx, number)
	if err != nil {
		return err
	}
	return v.Executor().TraceCalls(ctx, at, options, run)
}

// SimulateBlocks runs blocks of calls that would follow a block of the view, as
// [execute.Executor.SimulateBlocks] does.
func (v *View) SimulateBlocks(ctx context.Context, number uint64, blocks []execute.BlockCalls, options execute.SimulationOptions, done func(*execute.SimulatedBlock) error) error {
	var messages []*execute.Message
	for i := range blocks {
		messages = append(messages, blocks[i].Calls...)
	}
	parent, err := gather(ctx, v.hasRemoteState(number, archive.OfTries), func(ctx context.Context) (execute.Parent, error) {
		parent, err := v.parentWithTries(ctx, number)
		if err == nil {
			prefetchCalls(ctx, parent.State, messages...)
		}
		return parent, err
	})
	if err != nil {
		return err
	}
	options.SideBySide = v.history.Ahead() || v.hasRemoteState(number, archive.OfTries)
	return v.Executor().SimulateBlocks(ctx, parent, blocks, options, done)
}

// parent returns a block of the view in the form that the execution of its children needs.
func (v *View) parent(ctx context.Context, number uint64) (execute.Parent, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return execute.Parent{}, err
	}
	parent := execute.Parent{Header: header.Header, State: v.State(number), Ancestors: archive.Ancestors{History: v.history}}
	if v.history.Ahead() && !v.hasRemoteState(number, archive.OfState) {
		parent.Ahead = stateAhead{v.history, number}
	}
	return parent, nil
}

// parentWithTries is [View.parent] for callers that compute the state roots of the children. If the parent's
// trie nodes are not stored, the error is a [*archive.Pruned].
func (v *View) parentWithTries(ctx context.Context, number uint64) (execute.Parent, error) {
	parent, err := v.parent(ctx, number)
	if err != nil {
		return parent, err
	}
	if parent.State = v.stateWithTries(number); !v.hasRemoteState(number, archive.OfTries) {
		return parent, v.history.CheckTries(number)
	}
	parent.Ahead = nil
	return parent, nil
}
