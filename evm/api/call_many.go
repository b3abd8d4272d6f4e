package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// maxManyCalls is how many calls eth_callMany, trace_callMany and debug_traceCallMany run.
const maxManyCalls = 10_000

// callManyMethods describes the method that runs bundles of messages.
func (a *API) callManyMethods() []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_callMany", Summary: "Runs bundles of messages, each message on what those before it left, and returns what their code returns.",
		Params: append(a.bundleParams(),
			jsonrpc.Param{Name: "State overrides", Summary: "What the messages see of accounts in place of their contents.", Schema: eth.StateOverrides},
			jsonrpc.Param{Name: "Timeout", Summary: "Milliseconds that all messages together may take, at most and by default 5000.", Schema: schema.Unsigned},
		),
		Result: eth.Result("Results", schema.Array(schema.Array(bundledResultSchema))), Errors: append(errorsOf(errEmptyBundles, errTooManyCalls(maxManyCalls+1)), blockErrors...),
		Cost: jsonrpc.Heavy(200), Concerns: jsonrpc.AnyContract, Handler: a.callMany,
	}}
}

// bundleParams describes bundles and their state context.
func (a *API) bundleParams() []jsonrpc.Param {
	return []jsonrpc.Param{
		eth.Required("Bundles", "The messages of each bundle, which see the same block.", bundlesSchema, a.example(func(s *sample) any {
			return []any{map[string]any{"transactions": []any{s.call}}}
		})),
		eth.Optional(eth.Required("State context", "The block, and the transaction before which the messages run. If left out: after the latest block.", stateContextSchema, a.example(func(s *sample) any {
			return map[string]any{"blockNumber": hexutil.Uint64(s.callBlock)}
		}))),
	}
}

// The schemas of bundles.
var (
	bundlesSchema = schema.Array(schema.Object(schema.Members{"transactions": schema.Array(eth.Call)}, schema.Members{"blockOverride": bundleBlockSchema})).
			Named("Bundles", "Lists of messages, with what they see of their block.")
	bundleBlockSchema = schema.Object(nil, schema.Members{
		"blockNumber": eth.Number, "coinbase": eth.Address, "timestamp": eth.Number, "baseFee": eth.Number,
		"number": eth.Number, "feeRecipient": eth.Address, "time": eth.Number, "baseFeePerGas": eth.Number,
		"gasLimit": eth.Number, "difficulty": eth.Number, "prevRandao": eth.Hash, "blobBaseFee": eth.Number,
	})
	stateContextSchema = schema.Object(nil, schema.Members{"blockNumber": eth.Block, "transactionIndex": schema.Integer(-1)}).
				Named("StateContext", "A block, by default the latest, and the transaction of it before which messages run; -1, the default: after the block.")
	bundledResultSchema = schema.Object(nil, schema.Members{
		"value": eth.Data, "error": schema.AnyOf(schema.String, schema.Object(schema.Members{"message": schema.String, "data": eth.Data}, nil)),
	}).Named("BundledResult", "What the code of a message returned, or why it failed.")
)

var errEmptyBundles = &trace.Error{Err: errors.New("empty bundles")}

func errTooManyCalls(count int) error {
	return errTooMany("calls", count, maxManyCalls)
}

// bundleQuestion is what eth_callMany and debug_traceCallMany are asked.
type bundleQuestion struct {
	bundles []execute.Bundle
	calls   counted[execute.Message]
	block   chain.BlockID
	index   *uint64 // of a transaction; nil: after the block
	options execute.CallOptions
}

// readBundles decodes the bundles and the state context.
func readBundles(args *parameter.Arguments) (q bundleQuestion) {
	q.calls.parse, q.calls.most = parseMessage, maxManyCalls
	q.bundles = parameter.Decode(args, 0, parseFirst(maxManyCalls+1, q.parseBundle))
	q.block.Tag = chain.Latest
	if args.Given(1) {
		parameter.Decode(args, 1, func(raw []byte) (any, error) { return nil, q.parseContext(raw) })
	}
	return q
}

// parseContext decodes the state context.
func (q *bundleQuestion) parseContext(raw []byte) error {
	return parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("blockNumber"):
			return setBlock(&q.block, value, chain.Latest)
		case name.Is("transactionIndex"):
			if string(value) == "-1" {
				q.index = nil
				return nil
			}
			return jsonrpc.SetOptional(&q.index, value, parameter.ParseCount)
		}
		return nil
	})
}

// parseBundle decodes a bundle. Members of its block have the names of Erigon, or those
// of other methods.
func (q *bundleQuestion) parseBundle(raw []byte) (b execute.Bundle, err error) {
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("transactions"):
			return jsonrpc.Set(&b.Calls, value, parseList(q.calls.next))
		case name.Is("blockOverride"):
			return jsonrpc.Set(&b.Block, value, parseBundleBlock)
		}
		return nil
	})
	return b, err
}

func parseBundleBlock(raw []byte) (o execute.BlockOverrides, err error) {
	if o, err = parseBlockOverrides(raw); err != nil {
		return o, err
	}
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("blockNumber"):
			return jsonrpc.Set(&o.Number, value, parameter.ParseUint256)
		case name.Is("coinbase"):
			return jsonrpc.SetOptional(&o.FeeRecipient, value, parameter.ParseAddress)
		case name.Is("timestamp"):
			return jsonrpc.SetOptional(&o.Time, value, parameter.ParseUint64)
		case name.Is("baseFee"):
			return jsonrpc.Set(&o.BaseFeePerGas, value, parameter.ParseUint256)
		case name.Is("blockHash"):
			if !jsonrpc.IsNull(value) {
				return errNoOverride
			}
		}
		return nil
	})
	return o, err
}

// check refuses a question without calls, or with too many.
func (q *bundleQuestion) check() error {
	total := 0
	for i := range q.bundles {
		total += len(q.bundles[i].Calls)
	}
	switch {
	case total == 0:
		return errEmptyBundles
	case q.calls.decoded > maxManyCalls || len(q.bundles) > maxManyCalls:
		return errTooManyCalls(max(q.calls.decoded, len(q.bundles)))
	}
	return nil
}

// callMany answers eth_callMany.
func (a *API) callMany(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 4, 1)
	q := readBundles(&args)
	if args.Given(2) {
		q.options.State = parameter.Decode(&args, 2, parseStateOverrides)
	}
	if args.Given(3) {
		limit := time.Duration(min(parameter.Decode(&args, 3, parameter.ParseCount), 1<<32)) * time.Millisecond
		q.options.Time = min(limit, execute.DefaultCallTime)
	}
	if args.Err != nil {
		return out, args.Err
	}
	if err := q.check(); err != nil {
		return out, err
	}
	view, number, err := a.at(ctx, q.block)
	if err != nil {
		return out, err
	}
	list := bundledList{out: append(out, '['), room: jsonrpc.RoomFor(ctx, out)}
	if q.index == nil {
		err = view.CallBundles(ctx, number, q.bundles, q.options, list.add)
	} else {
		err = q.replay(ctx, view, number, func(r *execute.Replay) error { return r.CallBundles(ctx, q.bundles, q.options, list.add) })
	}
	if err != nil {
		return out, callError(ctx, err, out)
	}
	return list.end(len(q.bundles)), nil
}

// replay calls run before the transaction that the state context names.
func (q *bundleQuestion) replay(ctx context.Context, view *query.View, number uint64, run func(*execute.Replay) error) error {
	return view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) error {
		if count := r.Block().Len(); *q.index > uint64(count) {
			return &trace.Error{Err: fmt.Errorf("transaction index %d out of range for block %#x", *q.index, r.Block().Hash())}
		}
		if err := r.Skip(int(*q.index)); err != nil {
			return err
		}
		return run(r)
	})
}

// bundledList is the array of the bundles' results that is being appended.
type bundledList struct {
	out   []byte
	room  jsonrpc.Room
	begun int // bundles
}

// enter ends the array of the last bundle and begins the next ones, up to a count.
func (l *bundledList) enter(bundles int) {
	for ; l.begun < bundles; l.begun++ {
		if l.begun > 0 {
			l.out = append(l.out, "],"...)
		}
		l.out = append(l.out, '[')
	}
}

// begin begins the result of a call.
func (l *bundledList) begin(bundle, call int) {
	l.enter(bundle + 1)
	if call > 0 {
		l.out = append(l.out, ',')
	}
}

// end returns the answer, which has the results of so many bundles.
func (l *bundledList) end(bundles int) []byte {
	l.enter(bundles)
	return append(l.out, "]]"...)
}

// add appends the result of a call.
func (l *bundledList) add(bundle, call int, result execute.BundleResult) error {
	l.begin(bundle, call)
	reverted := (*execute.RevertError)(nil)
	switch {
	case result.Err == nil:
		l.out = append(appendHex(append(l.out, `{"value":`...), result.Output), '}')
	case errors.As(result.Err, &reverted) && len(reverted.Data) > 0:
		l.out = jsonrpc.AppendString(append(l.out, `{"error":{"message":`...), reverted.Error())
		l.out = append(appendHex(append(l.out, `,"data":`...), reverted.Data), "}}"...)
	default:
		l.out = append(jsonrpc.AppendString(append(l.out, `{"error":`...), result.Err.Error()), '}')
	}
	return l.room.Check(len(l.out))
}
