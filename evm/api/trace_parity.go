package api

import (
	"context"
	"errors"
	"math"
	"slices"

	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// parityMethods describes the methods that trace transactions and calls in Parity's format,
// as Erigon and reth do.
func (a *API) parityMethods(d *eth.Description) []jsonrpc.Method {
	kinds := eth.Required("Trace types", "The parts of the trace that are returned.", schema.Array(traceKindSchema), jsonrpc.Given([]string{"trace"}))
	errs := append(errorsOf(errTraceTime), blockErrors...)
	frames, replayed := eth.Result("Frames", schema.OrNull(framesSchema)), eth.Result("Replayed transaction", schema.OrNull(replayedSchema))
	return []jsonrpc.Method{
		{
			Name: "trace_block", Summary: "Returns the frames of a block's transactions, and the rewards that the block pays.",
			Params: []jsonrpc.Param{d.Block}, Result: frames, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.parityBlock,
		},
		{
			Name: "trace_transaction", Summary: "Returns the frames of a transaction.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: frames, Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.parityTransaction,
		},
		{
			Name: "trace_get", Summary: "Returns the frame of a transaction at a trace address.",
			Params: []jsonrpc.Param{d.TransactionHash, eth.Required("Trace address", "The way to the frame: indices of frames, from the outermost.",
				schema.Array(schema.AnyOf(eth.Number, schema.Unsigned)), jsonrpc.Given([]int{}))},
			Result: eth.Result("Frame", schema.OrNull(frameSchema)), Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.parityGet,
		},
		{
			Name: "trace_filter", Summary: "Returns the frames in a range of blocks that are about some addresses. With a trace index they are found before any is executed, at most 10,000 of more than 50 blocks; use `after` and `count` for pages.",
			Params: []jsonrpc.Param{eth.Required("Filter", "Which frames are returned.", traceFilterSchema, a.example((*sample).frames))},
			Result: eth.Result("Frames", framesSchema),
			Errors: slices.Concat(errs, []*jsonrpc.Error{tooManyFrames(&query.TooManyTraces{Limit: maxFrames, From: 1, To: 0x2f, Fits: true})}),
			Cost:   jsonrpc.Heavy(1000), Concerns: jsonrpc.AnyContract, Handler: a.parityFilter,
		},
		{
			Name: "trace_call", Summary: "Runs a message and returns its trace.",
			Params: []jsonrpc.Param{d.Call, kinds, eth.Optional(d.CallBlock)}, Result: replayed, Errors: errs,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.AnyContract, Handler: a.parityCall,
		},
		{
			Name: "trace_callMany", Summary: "Runs messages one after the other, each on what those before it left, and returns their traces.",
			Params: []jsonrpc.Param{eth.Required("Calls", "The messages, each with its trace types.", schema.Array(schema.Array(schema.Any)),
				a.example(func(s *sample) any { return []any{[]any{s.call, []string{"trace"}}} })), eth.Optional(d.CallBlock)},
			Result: eth.Result("Replayed messages", schema.Array(replayedSchema)), Errors: append(errorsOf(errTooManyCalls(maxManyCalls+1)), errs...),
			Cost: jsonrpc.Heavy(200), Concerns: jsonrpc.AnyContract, Handler: a.parityCallMany,
		},
		{
			Name: "trace_rawTransaction", Summary: "Runs a signed transaction after the latest block, without sending it, and returns its trace.",
			Params: []jsonrpc.Param{eth.Required("Transaction", "The encoding of the signed transaction.", eth.Data, a.example(func(s *sample) any { return s.raw })), kinds},
			Result: replayed, Errors: errs,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.AnyContract, Handler: a.parityRawTransaction,
		},
		{
			Name: "trace_replayTransaction", Summary: "Runs a transaction again and returns its trace.",
			Params: []jsonrpc.Param{d.TransactionHash, kinds}, Result: replayed, Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.parityReplayTransaction,
		},
		{
			Name: "trace_replayBlockTransactions", Summary: "Runs the transactions of a block again and returns their traces.",
			Params: []jsonrpc.Param{d.Block, kinds}, Result: eth.Result("Replayed transactions", schema.OrNull(schema.Array(replayedSchema))), Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.parityReplayBlock,
		},
	}
}

// The schemas of traces in Parity's form.
var (
	traceKindSchema = schema.Enum("trace", "stateDiff", "vmTrace")
	frameSchema     = schema.Object(schema.Members{
		"action": schema.Object(nil, nil), "type": schema.Enum("call", "create", "suicide", "reward"), "subtraces": schema.Unsigned, "traceAddress": schema.Array(schema.Unsigned),
	}, schema.Members{
		"result": schema.OrNull(schema.Object(nil, nil)), "error": schema.String, "blockHash": eth.Hash, "blockNumber": schema.Unsigned,
		"transactionHash": eth.Hash, "transactionPosition": schema.Unsigned,
	}).Named("Frame", "A call, a creation, a self-destruction or a block reward.")
	framesSchema   = schema.Array(frameSchema)
	replayedSchema = schema.Object(schema.Members{
		"output": eth.Data, "trace": framesSchema, "stateDiff": schema.Any, "vmTrace": schema.Any,
	}, schema.Members{"transactionHash": eth.Hash}).Named("Replayed", "What became of a transaction or a message, as far as it was asked for.")
	traceFilterSchema = schema.Object(nil, schema.Members{
		"fromBlock": eth.Block, "toBlock": eth.Block, "fromAddress": schema.Array(eth.Address), "toAddress": schema.Array(eth.Address),
		"after": schema.AnyOf(eth.Number, schema.Unsigned), "count": schema.AnyOf(eth.Number, schema.Unsigned), "mode": schema.Enum("union", "intersection"),
	}).Named("TraceFilter", "Which frames are wanted: of some blocks, senders and receivers.")
)

// traceKinds decodes the list of trace types, which is the second parameter of every method that
// has one.
func traceKinds(args *parameter.Arguments) trace.Kinds {
	return parameter.Decode(args, 1, parseTraceKinds)
}

func parseTraceKinds(raw []byte) (kinds trace.Kinds, err error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		return kinds, errNonArray
	}
	for elements.Next() {
		name, ok := jsonrpc.String(elements.Value())
		if !ok {
			return kinds, errors.New("non-string value, want trace, stateDiff or vmTrace")
		}
		if err := kinds.ParseKind(string(name)); err != nil {
			return kinds, err
		}
	}
	return kinds, elements.Err()
}

// parityBlock answers trace_block: the frames of all transactions of a block, then its
// rewards; null if the block does not exist.
func (a *API) parityBlock(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Block(0)
	if args.Err != nil {
		return out, args.Err
	}
	view, number, err := a.at(ctx, id)
	if unknown(err) {
		return appendNull(out), nil
	}
	if err != nil {
		return out, err
	}
	frames := frameList{out: append(out, '['), room: jsonrpc.RoomFor(ctx, out)}
	if err := a.eachFrame(ctx, view, number, &frames, frames.add); err != nil {
		return out, err
	}
	return append(frames.out, ']'), nil
}

// frameList is an array of frames under construction.
type frameList struct {
	out  []byte
	room jsonrpc.Room
	len  int

	ranAside bool // what RanAside of the last block's replay has returned
}

func (l *frameList) add(f *trace.Frame) error {
	if l.len > 0 {
		l.out = append(l.out, ',')
	}
	l.len++
	l.out = f.Append(l.out)
	return l.room.Check(len(l.out))
}

// eachFrame calls found with the frames of a block. Their memory counts against the room of
// the list.
func (a *API) eachFrame(ctx context.Context, view *query.View, number uint64, list *frameList, found func(*trace.Frame) error) error {
	if number == 0 {
		return nil
	}
	return view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) error {
		block := r.Block()
		defer func() { list.ranAside = r.RanAside() }()
		r.Expect(0, block.Len())
		for range block.Len() {
			replayed, err := trace.Kinds{Trace: true}.Transaction(ctx, r, a.chain.Executor().Config(), len(list.out), list.room)
			if err != nil {
				return err
			}
			for i := range replayed.Frames {
				if err := found(&replayed.Frames[i]); err != nil {
					return err
				}
			}
		}
		rewards, err := a.rewards(block)
		if err != nil {
			return err
		}
		for _, reward := range rewards {
			frame := trace.RewardFrame(block, &reward)
			if err := found(&frame); err != nil {
				return err
			}
		}
		return nil
	})
}

// minedTransaction finds a transaction in a view: its block number and index; found is
// false if there is none.
func (a *API) minedTransaction(ctx context.Context, view *query.View, hash common.Hash) (number uint64, index int, found bool, err error) {
	b, index, err := findIn(ctx, view, hash, a.block)
	if b == nil || err != nil {
		return 0, 0, false, err
	}
	defer b.release()
	return b.Number.Uint64(), index, true, nil
}

// replayOne runs a transaction again; nil if there is none with that hash.
func (a *API) replayOne(ctx context.Context, hash common.Hash, kinds trace.Kinds, out []byte) (replayed *trace.Replayed, err error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, err
	}
	number, index, found, err := a.minedTransaction(ctx, view, hash)
	if !found || err != nil {
		return nil, err
	}
	err = view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) (err error) {
		r.Expect(index, index+1)
		if err = r.Skip(index); err == nil {
			replayed, err = kinds.Transaction(ctx, r, a.chain.Executor().Config(), len(out), jsonrpc.RoomFor(ctx, out))
		}
		return err
	})
	return replayed, err
}

// parityTransaction answers trace_transaction: null if the transaction does not exist.
func (a *API) parityTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	hash := args.Hash(0)
	if args.Err != nil {
		return out, args.Err
	}
	replayed, err := a.replayOne(ctx, hash, trace.Kinds{Trace: true}, out)
	if replayed == nil || err != nil {
		return appendNull(out), err
	}
	frames := frameList{out: append(out, '['), room: jsonrpc.RoomFor(ctx, out)}
	for i := range replayed.Frames {
		if err := frames.add(&replayed.Frames[i]); err != nil {
			return out, err
		}
	}
	return append(frames.out, ']'), nil
}

// parityGet answers trace_get: the frame of a transaction at a trace address; null if it
// does not exist.
func (a *API) parityGet(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	hash, path := args.Hash(0), parameter.Decode(&args, 1, parseTraceAddress)
	if args.Err != nil {
		return out, args.Err
	}
	replayed, err := a.replayOne(ctx, hash, trace.Kinds{Trace: true}, out)
	if replayed == nil || err != nil {
		return appendNull(out), err
	}
	for i := range replayed.Frames {
		if slices.Equal(replayed.Frames[i].TraceAddress, path) {
			return replayed.Frames[i].Append(out), nil
		}
	}
	return appendNull(out), nil
}

// parseTraceAddress decodes a list of indices.
func parseTraceAddress(raw []byte) ([]int, error) {
	return parseList(func(raw []byte) (int, error) {
		index, err := parameter.ParseCount(raw)
		return int(min(index, math.MaxInt32)), err
	})(raw)
}

// parityReplayTransaction answers trace_replayTransaction: null if the transaction does not
// exist.
func (a *API) parityReplayTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	hash, kinds := args.Hash(0), traceKinds(&args)
	if args.Err != nil {
		return out, args.Err
	}
	replayed, err := a.replayOne(ctx, hash, kinds, out)
	if replayed == nil || err != nil {
		return appendNull(out), err
	}
	replayed.Unplace()
	return replayed.Append(out, &hash), nil
}

// parityReplayBlock answers trace_replayBlockTransactions: null if the block does not
// exist.
func (a *API) parityReplayBlock(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	id, kinds := args.Block(0), traceKinds(&args)
	if args.Err != nil {
		return out, args.Err
	}
	view, number, err := a.at(ctx, id)
	if unknown(err) {
		return appendNull(out), nil
	}
	if err != nil {
		return out, err
	}
	if number == 0 {
		return append(out, "[]"...), nil
	}
	room := jsonrpc.RoomFor(ctx, out)
	err = view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) (err error) {
		block := r.Block()
		r.Expect(0, block.Len())
		out, err = room.AppendArray(out, block.Len(), func(out []byte, i int) ([]byte, error) {
			replayed, err := kinds.Transaction(ctx, r, a.chain.Executor().Config(), len(out), room)
			if err != nil {
				return out, err
			}
			replayed.Unplace()
			tx, err := block.Transaction(i)
			if err != nil {
				return out, err
			}
			hash := tx.Hash()
			return replayed.Append(out, &hash), nil
		})
		return err
	})
	return out, err
}
