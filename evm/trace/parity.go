package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/tracers"
	"github.com/ethereum/go-ethereum/params"
)

// Kinds are the requested parts of a trace in Parity's format.
type Kinds struct{ Trace, StateDiff, VMTrace bool }

// ParseKind adds the kind with a name.
func (k *Kinds) ParseKind(name string) error {
	switch name {
	case "trace":
		k.Trace = true
	case "stateDiff":
		k.StateDiff = true
	case "vmTrace":
		k.VMTrace = true
	default:
		return fmt.Errorf("unknown trace type %q (want trace, stateDiff or vmTrace)", name)
	}
	return nil
}

// Replayed is a transaction or call that has run, in Parity's format.
type Replayed struct {
	Output    []byte
	Frames    []Frame // of trace; nil if not requested
	stateDiff json.RawMessage
	vmTrace   []byte
}

// Transaction runs the next transaction of a replay. room is for the whole answer, of which
// length bytes exist already.
func (k Kinds) Transaction(ctx context.Context, replay *execute.Replay, chain *params.ChainConfig, length int, room Room) (*Replayed, error) {
	return k.run(ctx, about(replay), chain, length, room, replay.Trace)
}

// Call runs a call, which call does under a tracer. Its frames have no block and
// transaction.
func (k Kinds) Call(ctx context.Context, chain *params.ChainConfig, length int, room Room, call func(ctx context.Context, tracer execute.Tracer) error) (*Replayed, error) {
	replayed, err := k.run(ctx, &tracers.Context{BlockNumber: new(big.Int)}, chain, length, room, call)
	if err == nil {
		replayed.Unplace()
	}
	return replayed, err
}

// Unplace removes the block and the transaction from the frames.
func (r *Replayed) Unplace() {
	for i := range r.Frames {
		f := &r.Frames[i]
		f.BlockHash, f.BlockNumber, f.TxHash, f.TxPosition = nil, nil, nil, nil
	}
}

// Options of the library's tracers for Parity's formats.
const (
	flatOptions = `{"convertParityErrors":true}`
	diffOptions = `{"diffMode":true}`
)

func (k Kinds) run(ctx context.Context, about *tracers.Context, chain *params.ChainConfig, length int, room Room, run func(context.Context, execute.Tracer) error) (*Replayed, error) {
	var flat, diff *tracers.Tracer
	var vm *vmTracer
	var root rootFrame
	err := within(ctx, DefaultTime, func(ctx context.Context, end context.CancelCauseFunc) (err error) {
		watching := hookList{root.hooks()}
		if k.Trace {
			if flat, err = tracers.DefaultDirectory.New("flatCallTracer", about, json.RawMessage(flatOptions), chain); err != nil {
				return err
			}
			watching = append(watching, metered(flat.Hooks, length, room, end))
		}
		if k.StateDiff {
			if diff, err = tracers.DefaultDirectory.New("prestateTracer", about, json.RawMessage(diffOptions), chain); err != nil {
				return err
			}
			watching = append(watching, diff.Hooks)
		}
		if k.VMTrace {
			vm = newVMTracer(behind{room, length}, end)
			watching = append(watching, vm.hooks())
		}
		return run(ctx, execute.Tracer{Hooks: watching.hooks(), Stop: func(error) {}})
	})
	if err != nil {
		return nil, err
	}
	replayed := &Replayed{Output: root.output}
	if flat != nil {
		result, err := flat.GetResult()
		if err != nil {
			return nil, &Error{err}
		}
		if replayed.Frames, err = parseFrames(result, root.gas, root.used); err != nil {
			return nil, err
		}
	}
	if diff != nil {
		if replayed.stateDiff, err = diff.GetResult(); err != nil {
			return nil, &Error{err}
		}
	}
	if vm != nil {
		replayed.vmTrace = vm.out
	}
	return replayed, nil
}

// Append appends the requested parts. hash is the transaction's; nil for a call.
//
//	{"output":"0x","stateDiff":null,"trace":[...],"vmTrace":null}
func (r *Replayed) Append(out []byte, hash *common.Hash) ([]byte, error) {
	out = appendBytes(append(out, `{"output":`...), r.Output)
	out = append(out, `,"stateDiff":`...)
	var err error
	if r.stateDiff == nil {
		out = append(out, "null"...)
	} else if out, err = appendStateDiff(out, r.stateDiff); err != nil {
		return out, err
	}
	out = append(out, `,"trace":[`...)
	for i := range r.Frames {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = r.Frames[i].Append(out); err != nil {
			return out, err
		}
	}
	out = append(out, ']')
	if hash != nil {
		out = appendBytes(append(out, `,"transactionHash":`...), hash[:])
	}
	out = append(out, `,"vmTrace":`...)
	if r.vmTrace == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, r.vmTrace...)
	}
	return append(out, '}'), nil
}

// behind is the room after the bytes that already exist.
type behind struct {
	room   Room
	length int
}

func (b behind) Check(length int) error { return b.room.Check(b.length + length) }

// rootFrame is the result of the outermost frame of a run.
type rootFrame struct {
	gas, used uint64 // without the intrinsic gas
	output    []byte
}

func (r *rootFrame) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnEnter: func(depth int, _ byte, _, _ common.Address, _ []byte, gas uint64, _ *big.Int) {
			if depth == 0 {
				r.gas = gas
			}
		},
		OnExit: func(depth int, output []byte, used uint64, _ error, _ bool) {
			if depth == 0 {
				r.used, r.output = used, common.CopyBytes(output)
			}
		},
	}
}

// hookList is several tracers of the same run, called in turn.
type hookList []*tracing.Hooks

func (l hookList) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart: func(env *tracing.VMContext, tx *types.Transaction, from common.Address) {
			for _, h := range l {
				if h.OnTxStart != nil {
					h.OnTxStart(env, tx, from)
				}
			}
		},
		OnTxEnd: func(receipt *types.Receipt, err error) {
			for _, h := range l {
				if h.OnTxEnd != nil {
					h.OnTxEnd(receipt, err)
				}
			}
		},
		OnEnter: func(depth int, kind byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
			for _, h := range l {
				if h.OnEnter != nil {
					h.OnEnter(depth, kind, from, to, input, gas, value)
				}
			}
		},
		OnExit: func(depth int, output []byte, used uint64, err error, reverted bool) {
			for _, h := range l {
				if h.OnExit != nil {
					h.OnExit(depth, output, used, err, reverted)
				}
			}
		},
		OnOpcode: l.onOpcode(),
		OnFault: func(pc uint64, op byte, gas, cost uint64, scope tracing.OpContext, depth int, err error) {
			for _, h := range l {
				if h.OnFault != nil {
					h.OnFault(pc, op, gas, cost, scope, depth, err)
				}
			}
		},
		OnLog: func(log *types.Log) {
			for _, h := range l {
				if h.OnLog != nil {
					h.OnLog(log)
				}
			}
		},
	}
}

// onOpcode returns nil if no tracer wants opcodes, since the EVM is faster without the
// hook.
func (l hookList) onOpcode() tracing.OpcodeHook {
	var asking []tracing.OpcodeHook
	for _, h := range l {
		if h.OnOpcode != nil {
			asking = append(asking, h.OnOpcode)
		}
	}
	if len(asking) == 0 {
		return nil
	}
	return func(pc uint64, op byte, gas, cost uint64, scope tracing.OpContext, returned []byte, depth int, err error) {
		for _, ask := range asking {
			ask(pc, op, gas, cost, scope, returned, depth, err)
		}
	}
}
