package query

import (
	"context"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Replay runs the transactions of a block of the view again, as
// [execute.Executor.Replay] does.
func (v *View) Replay(ctx context.Context, number uint64, options execute.ReplayOptions, use func(*execute.Replay) error) error {
	if number == 0 {
		return execute.ErrGenesis
	}
	header, err := v.Header(ctx, number)
	if err != nil {
		return err
	}
	body, err := v.Body(ctx, number, nil)
	if err != nil {
		return err
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return err
	}
	options.Senders = make([]common.Address, body.Len())
	for i := range options.Senders {
		options.Senders[i] = body.Sender(i)
	}
	options.Stored = storedBlock{v.history, number}
	return v.replay(ctx, block, options, use)
}

// storedBlock is a block of a history. It implements [execute.StoredBlock].
type storedBlock struct {
	history *archive.History
	number  uint64
}

func (s storedBlock) AccessList(ctx context.Context) ([]byte, error) {
	return s.history.AccessList(ctx, s.number)
}

func (s storedBlock) LogsBefore(ctx context.Context, index int) (uint64, error) {
	receipts, err := s.history.Receipts(ctx, s.number, nil)
	if err != nil {
		return 0, err
	}
	return receipts.LogsBefore(index)
}

// ReplayBlock is Replay for a block whose parent is in the view, while it need not be
// itself.
func (v *View) ReplayBlock(ctx context.Context, block *types.Block, options execute.ReplayOptions, use func(*execute.Replay) error) error {
	if block.NumberU64() == 0 {
		return execute.ErrGenesis
	}
	parent, err := v.FindBlock(ctx, block.ParentHash())
	if err != nil {
		return err
	}
	if parent+1 != block.NumberU64() {
		return ErrUnknownHash
	}
	return v.replay(ctx, block, options, use)
}

func (v *View) replay(ctx context.Context, block *types.Block, options execute.ReplayOptions, use func(*execute.Replay) error) error {
	parent, err := v.parent(ctx, block.NumberU64()-1)
	if err != nil {
		return err
	}
	return v.Executor().Replay(ctx, parent, block, options, use)
}

// TraceCall runs a message call under a tracer at a block of the view, as
// [execute.Executor.TraceCall] does.
func (v *View) TraceCall(ctx context.Context, number uint64, message *execute.Message, options execute.CallOptions, tracer execute.Tracer) error {
	at, err := v.callAt(ctx, number)
	if err != nil {
		return err
	}
	return v.Executor().TraceCall(ctx, at, message, options, tracer)
}

// TraceCalls runs message calls one after the other at a block of the view, as
// [execute.Executor.TraceCalls] does.
func (v *View) TraceCalls(ctx context.Context, number uint64, options execute.CallOptions, run func(call func(context.Context, *execute.Message, execute.Tracer) error) error) error {
	at, err := v.callAt(ctx, number)
	if err != nil {
		return err
	}
	return v.Executor().TraceCalls(ctx, at, options, run)
}

// SimulateBlocks runs blocks of calls that would follow a block of the view, as
// [execute.Executor.SimulateBlocks] does.
func (v *View) SimulateBlocks(ctx context.Context, number uint64, blocks []execute.BlockCalls, options execute.SimulationOptions, done func(*execute.SimulatedBlock) error) error {
	parent, err := v.parent(ctx, number)
	if err != nil {
		return err
	}
	return v.Executor().SimulateBlocks(ctx, parent, blocks, options, done)
}

// parent is a block of the view as what others are executed on.
func (v *View) parent(ctx context.Context, number uint64) (execute.Parent, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return execute.Parent{}, err
	}
	return execute.Parent{Header: header.Header, State: v.State(number), Ancestors: archive.Ancestors{History: v.history}}, nil
}
