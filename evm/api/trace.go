package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/evm/trace/script"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// traceMethods describes the methods that re-run transactions, or run calls, under a
// tracer.
func (a *API) traceMethods(d *eth.Description) []jsonrpc.Method {
	config := jsonrpc.Param{Name: "Config", Summary: "The tracer and its options; the struct logger by default.", Schema: traceConfigSchema}
	callConfig := config
	callConfig.Schema = traceCallConfigSchema
	errs := append(errorsOf(execute.ErrGenesis, errTraceTime, errNoTransaction), existingErrors...)
	trace, traces := eth.Result("Trace", traceSchema), eth.Result("Traces", transactionTracesSchema)
	return []jsonrpc.Method{
		{
			Name: "debug_traceTransaction", Summary: "Runs a transaction again under a tracer and returns what the tracer saw.",
			Params: []jsonrpc.Param{d.TransactionHash, config}, Result: trace, Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.traceTransaction,
		},
		{
			Name: "debug_traceBlockByNumber", Summary: "Runs the transactions of a block again under a tracer.",
			Params: []jsonrpc.Param{d.BlockNumber, config}, Result: traces, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.traceBlock((*parameter.Arguments).BlockNumber),
		},
		{
			Name: "debug_traceBlockByHash", Summary: "Runs the transactions of a block again under a tracer.",
			Params: []jsonrpc.Param{d.BlockHash, config}, Result: traces, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.traceBlock((*parameter.Arguments).BlockHash),
		},
		{
			Name: "debug_traceBlock", Summary: "Runs the transactions of a block, given in its encoding, on its parent under a tracer.",
			Params: []jsonrpc.Param{eth.Required("Block RLP", "The encoding of the block.", eth.Data, a.example(func(s *sample) any { return s.encoded })), config},
			Result: traces, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.traceEncodedBlock,
		},
		{
			Name: "debug_traceCall", Summary: "Runs a message under a tracer, after a block or between its transactions.",
			Params: []jsonrpc.Param{d.Call, eth.Optional(d.CallBlock), callConfig}, Result: trace, Errors: errs,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.AnyContract, Handler: a.traceCall,
		},
		{
			Name: "debug_intermediateRoots", Summary: "Returns the state root after each transaction of a block.",
			Params: []jsonrpc.Param{d.BlockHash, config}, Result: eth.Result("State roots", schema.OrNull(schema.Array(eth.Hash))), Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.NoContract, Handler: a.intermediateRoots,
		},
	}
}

// The schemas of traces and of their parameters.
var (
	traceOptions = schema.Members{
		"tracer": schema.String, "tracerConfig": schema.Object(nil, nil), "timeout": schema.String,
		"enableMemory": schema.Boolean, "disableStack": schema.Boolean, "disableStorage": schema.Boolean, "enableReturnData": schema.Boolean,
	}
	traceConfigSchema     = schema.Object(nil, traceOptions).Named("TraceConfig", "A tracer by its name, or as JavaScript, with its options.")
	traceCallConfigSchema = schema.Object(nil, func() schema.Members {
		all := maps.Clone(traceOptions)
		maps.Copy(all, schema.Members{"stateOverrides": eth.StateOverrides, "blockOverrides": eth.BlockOverrides, "txIndex": eth.Number})
		return all
	}()).Named("TraceCallConfig", "The options of a trace, and what the message sees in place of the chain's own contents.")

	traceSchema             = schema.Any.Named("Trace", "What the tracer saw, in the tracer's own form.")
	transactionTracesSchema = schema.Array(schema.Object(schema.Members{"txHash": eth.Hash}, schema.Members{"result": traceSchema, "error": schema.String}))
)

// The errors of traces, in addition to those of every method.
var (
	errScriptsOff    = errors.New("unknown tracer (want the name of a native tracer; JavaScript is off on this network)")
	errTraceTime     = &trace.Error{Err: trace.ErrTime}
	errNoTransaction = &trace.Error{Err: errors.New("transaction not found")}
	errTracePending  = &trace.Error{Err: errors.New("tracing on top of pending is not supported")}
)

// traceConfig decodes the optional trace configuration at position n.
func (a *API) traceConfig(args *parameter.Arguments, n int) *trace.Config {
	return parameter.Decode(args, n, func(raw []byte) (*trace.Config, error) {
		config, err := trace.ParseConfig(raw, a.chain.Executor().Config())
		if err == nil && config.IsScript() && a.config.Workers == nil {
			return nil, errScriptsOff
		}
		return config, err
	})
}

// traceTransaction answers debug_traceTransaction.
func (a *API) traceTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	hash, config := args.Hash(0), a.traceConfig(&args, 1)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	b, index, err := findIn(ctx, view, hash, a.block)
	if err != nil {
		return out, err
	}
	if b == nil {
		return out, errNoTransaction
	}
	number := b.Number.Uint64()
	b.release()
	input, err := view.Input(ctx, number)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	err = a.tracing(ctx, config, input, index, index+1, room, func(next nextTrace) (err error) {
		out, err = next(out)
		return err
	})
	return out, err
}

// traceBlock answers debug_traceBlockByNumber and debug_traceBlockByHash.
func (a *API) traceBlock(which blockArgument) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 2, 1)
		id, config := which(&args, 0), a.traceConfig(&args, 1)
		if args.Err != nil {
			return out, args.Err
		}
		view, number, err := a.existing(ctx, id)
		if err != nil {
			return out, err
		}
		input, err := view.Input(ctx, number)
		if err != nil {
			return out, err
		}
		return a.appendTraces(ctx, out, input, config)
	}
}

// nextTrace appends the trace of the next transaction to out.
type nextTrace func(out []byte) ([]byte, error)

// tracing traces transactions of a block, from first up to but without end: here, or in a
// worker if the tracer is a script. use must get the trace of each of them.
func (a *API) tracing(ctx context.Context, config *trace.Config, input query.Input, first, end int, room trace.Room, use func(nextTrace) error) error {
	if config.IsScript() {
		q := a.scriptQuestion(config, input)
		q.First, q.End = first, end
		return a.runScript(ctx, q, room, use)
	}
	return a.chain.Executor().Replay(ctx, input.Parent, input.Block, input.Options(), func(r *execute.Replay) error {
		r.Expect(first, end)
		if err := r.Skip(first); err != nil {
			return err
		}
		return use(func(out []byte) ([]byte, error) { return config.AppendTransaction(ctx, r, out, room) })
	})
}

// scriptQuestion is a question about a block for a worker.
func (a *API) scriptQuestion(config *trace.Config, input query.Input) *script.Question {
	return &script.Question{
		Config: config, Executor: a.chain.Executor(), Block: input.Block, Parent: input.Parent, Options: input.Options(),
	}
}

func (a *API) runScript(ctx context.Context, q *script.Question, room trace.Room, use func(nextTrace) error) error {
	return script.Run(ctx, a.config.Workers, jsonrpc.CallerFrom(ctx), q, room, func(t *script.Traces) error { return use(t.Append) })
}

// appendTraces appends an array with the trace of every transaction of a block:
//
//	[{"txHash":"0x...","result":...}, ...]
func (a *API) appendTraces(ctx context.Context, out []byte, input query.Input, config *trace.Config) ([]byte, error) {
	room := jsonrpc.RoomFor(ctx, out)
	hashes, err := a.hashes.ofInput(&input)
	if err != nil {
		return out, err
	}
	count := input.Block.Len()
	err = a.tracing(ctx, config, input, 0, count, room, func(next nextTrace) (err error) {
		out, err = room.AppendArray(out, count, func(out []byte, i int) ([]byte, error) {
			out = appendHex(append(out, `{"txHash":`...), hashes.hash(i))
			traced, err := next(append(out, `,"result":`...))
			// If a script fails for one transaction, that entry has the error, and the next
			// transaction follows.
			if failed := (*script.Failed)(nil); errors.As(err, &failed) {
				traced, err = jsonrpc.AppendString(append(out, `,"error":`...), failed.Error()), nil
			}
			return append(traced, '}'), err
		})
		return err
	})
	return out, err
}

// existing finds the block that id names, and the view that it is in. Unlike [API.at] it
// names a block that is not there in the error, as geth's debug methods do.
func (a *API) existing(ctx context.Context, id chain.BlockID) (*query.View, uint64, error) {
	view, number, err := a.at(ctx, id)
	if unknown(err) {
		return nil, 0, noBlock(id)
	}
	return view, number, err
}

// noBlock is geth's error for a block that is not on the chain.
func noBlock(id chain.BlockID) error {
	if id.Hash != nil {
		return &trace.Error{Err: fmt.Errorf("block %#x not found", *id.Hash)}
	}
	return &trace.Error{Err: fmt.Errorf("block #%d not found", id.Number)}
}

// traceQuestion is the parameters of debug_traceCall.
type traceQuestion struct {
	callQuestion
	config  *trace.Config
	txIndex *uint64 // the call runs before this transaction of the block; nil: after the block
}

// traceQuestion decodes a call object, a block, and a trace configuration, which includes
// the overrides.
func (a *API) traceQuestion(args *parameter.Arguments) (question traceQuestion) {
	question.message = parameter.Decode(args, 0, parseMessage)
	question.block = args.Block(1)
	question.config = a.traceConfig(args, 2)
	if args.Err != nil {
		return question
	}
	// Its time ends the trace itself first, which then says so.
	question.options.Time = min(question.config.Time(), time.Hour) + time.Second
	if !args.Given(2) {
		return question
	}
	parameter.Decode(args, 2, func(raw []byte) (any, error) {
		return nil, parseObject(raw, func(name jsonrpc.Name, value []byte) error {
			switch {
			case name.Is("stateOverrides"):
				return jsonrpc.Set(&question.options.State, value, parseStateOverrides)
			case name.Is("blockOverrides"):
				return jsonrpc.Set(&question.options.Block, value, parseBlockOverrides)
			case name.Is("txIndex"):
				return jsonrpc.SetOptional(&question.txIndex, value, parameter.ParseUint64)
			}
			return nil
		})
	})
	return question
}

// traceCall answers debug_traceCall.
func (a *API) traceCall(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 1)
	question := a.traceQuestion(&args)
	if args.Err != nil {
		return out, args.Err
	}
	if question.block.Tag == chain.Pending {
		return out, errTracePending
	}
	view, number, err := a.existing(ctx, question.block)
	if err != nil {
		return out, err
	}
	out, err = a.appendTracedCall(ctx, &question, view, number, out)
	return out, callError(ctx, err, out)
}

// appendTracedCall appends the trace of a call at a block, or before one of its transactions.
func (a *API) appendTracedCall(ctx context.Context, q *traceQuestion, view *query.View, number uint64, out []byte) (_ []byte, err error) {
	room := jsonrpc.RoomFor(ctx, out)
	if q.txIndex == nil {
		if q.config.IsScript() {
			at, err := view.CallAt(ctx, number)
			if err != nil {
				return out, err
			}
			return a.appendScript(ctx, q, &script.Question{Config: q.config, Executor: a.chain.Executor(), At: at}, out, room)
		}
		err = view.TraceCall(ctx, number, q.message, q.options, func(run execute.TraceFunc) (err error) {
			out, err = q.config.AppendCall(ctx, out, room, run)
			return err
		})
		return out, err
	}
	if number == 0 {
		return out, &trace.Error{Err: errors.New("no transaction in genesis")}
	}
	input, err := view.Input(ctx, number)
	if err != nil {
		return out, err
	}
	if err := checkIndex(*q.txIndex, uint64(input.Block.Len()), input.Block.Hash()); err != nil {
		return out, err
	}
	if q.config.IsScript() {
		asked := a.scriptQuestion(q.config, input)
		asked.First = int(*q.txIndex)
		return a.appendScript(ctx, q, asked, out, room)
	}
	err = a.chain.Executor().Replay(ctx, input.Parent, input.Block, input.Options(), func(r *execute.Replay) error {
		if err := r.Skip(int(*q.txIndex)); err != nil {
			return err
		}
		out, err = q.config.AppendCall(ctx, out, room, func(ctx context.Context, tracer execute.Tracer) error {
			return r.TraceCall(ctx, q.message, q.options, tracer)
		})
		return err
	})
	return out, err
}

// appendScript appends what a script made of a call.
func (a *API) appendScript(ctx context.Context, q *traceQuestion, asked *script.Question, out []byte, room trace.Room) ([]byte, error) {
	asked.Message, asked.CallOptions = q.message, q.options
	err := a.runScript(ctx, asked, room, func(next nextTrace) (err error) {
		out, err = next(out)
		return err
	})
	return out, err
}

// intermediateRoots answers debug_intermediateRoots: the state root after each
// transaction of a block.
func (a *API) intermediateRoots(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	id := args.BlockHash(0)
	parameter.Decode(&args, 1, trace.CheckTypes) // it has no effect on roots
	if args.Err != nil {
		return out, args.Err
	}
	view, number, err := a.existing(ctx, id)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	err = view.Replay(ctx, number, execute.ReplayOptions{Roots: true}, func(r *execute.Replay) (err error) {
		if r.Block().Len() == 0 {
			out = appendNull(out) // as in geth
			return nil
		}
		r.Expect(0, r.Block().Len())
		out, err = room.AppendArray(out, r.Block().Len(), func(out []byte, i int) ([]byte, error) {
			err := r.Skip(i + 1)
			return appendHash(out, r.Root()), err
		})
		return err
	})
	return out, err
}
