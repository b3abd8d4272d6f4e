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
	stateDiff []byte  // nil if not requested
	vmTrace   []byte  // nil if not requested
}

// Transaction runs the next transaction of a replay. room is for the whole answer, of which
// length bytes exist already.
func (k Kinds) Transaction(ctx context.Context, replay *execute.Replay, chain *params.ChainConfig, length int, room Room) (*Replayed, error) {
	block, index := replay.Block(), replay.Next()
	tx, err := block.Transaction(index)
	if err != nil {
		return nil, err
	}
	at := &place{block: block.Hash(), transaction: tx.Hash(), number: block.Header().Number.Uint64(), position: uint64(index)}
	return k.run(ctx, at, chain, length, room, replay.Trace)
}

// Call runs a call, which call does under a tracer. Its frames have no block and
// transaction.
func (k Kinds) Call(ctx context.Context, chain *params.ChainConfig, length int, room Room, call func(ctx context.Context, tracer execute.Tracer) error) (*Replayed, error) {
	return k.run(ctx, nil, chain, length, room, call)
}

// Unplace removes the block and the transaction from the frames.
func (r *Replayed) Unplace() {
	for i := range r.Frames {
		r.Frames[i].place = nil
	}
}

func (k Kinds) run(ctx context.Context, at *place, chain *params.ChainConfig, length int, room Room, run func(context.Context, execute.Tracer) error) (*Replayed, error) {
	replayed := new(Replayed)
	err := within(ctx, DefaultTime, func(ctx context.Context, end context.CancelCauseFunc) (err error) {
		var root rootOutput
		watching := hookList{root.hooks()}
		var flat *flatTracer
		if k.Trace {
			flat = newFlatTracer(chain, length, room, end)
			watching = append(watching, flat.hooks())
		}
		var diff *prestateTracer
		if k.StateDiff {
			if diff, err = newPrestateTracer(json.RawMessage(diffOptions), chain, 0, behind{room, length}, end); err != nil {
				return err
			}
			watching = append(watching, diff.hooks())
		}
		var vm *vmTracer
		if k.VMTrace {
			vm = newVMTracer(behind{room, length}, end)
			watching = append(watching, vm.hooks())
		}
		if err := run(ctx, execute.Tracer{Hooks: watching.hooks(), Stop: func(error) {}}); err != nil {
			return err
		}
		replayed.Output = root.output
		if flat != nil {
			if replayed.Frames, err = flat.result(at); err != nil {
				return &Error{err}
			}
		}
		if diff != nil {
			if replayed.stateDiff, err = diff.appendStateDiff(nil); err != nil {
				return err
			}
		}
		if vm != nil {
			replayed.vmTrace = vm.out
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return replayed, nil
}

// diffOptions are those of prestateTracer for stateDiff.
const diffOptions = `{"diffMode":true}`

// Append appends the requested parts. hash is the transaction's; nil for a call.
//
//	{"output":"0x","stateDiff":null,"trace":[...],"vmTrace":null}
func (r *Replayed) Append(out []byte, hash *common.Hash) []byte {
	out = appendBytes(append(out, `{"output":`...), r.Output)
	out = appendOrNull(append(out, `,"stateDiff":`...), r.stateDiff)
	out = append(out, `,"trace":[`...)
	for i := range r.Frames {
		if i > 0 {
			out = append(out, ',')
		}
		out = r.Frames[i].Append(out)
	}
	out = append(out, ']')
	if hash != nil {
		out = appendBytes(append(out, `,"transactionHash":`...), hash[:])
	}
	return append(appendOrNull(append(out, `,"vmTrace":`...), r.vmTrace), '}')
}

// appendOrNull appends JSON, or null if there is none.
func appendOrNull(out, text []byte) []byte {
	if text == nil {
		return append(out, "null"...)
	}
	return append(out, text...)
}

// behind is the room after the bytes that already exist.
type behind struct {
	room   Room
	length int
}

func (b behind) Check(length int) error { return b.room.Check(b.length + length) }

// rootOutput is the output of the outermost frame of a run.
type rootOutput struct{ output []byte }

func (r *rootOutput) hooks() *tracing.Hooks {
	return &tracing.Hooks{OnExit: func(depth int, output []byte, _ uint64, _ error, _ bool) {
		if depth == 0 {
			r.output = common.CopyBytes(output)
		}
	}}
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
