package api

import (
	"context"
	"errors"
	"maps"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// traceCallManyMethods describes the method that traces bundles of messages.
func (a *API) traceCallManyMethods() []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "debug_traceCallMany", Summary: "Runs bundles of messages under a tracer, each message on what those before it left.",
		Params: append(a.bundleParams(), jsonrpc.Param{Name: "Config", Summary: "The tracer and its options; the struct logger by default.", Schema: traceCallManyConfigSchema}),
		Result: eth.Result("Traces", schema.Array(schema.Array(traceSchema))),
		Errors: append(errorsOf(execute.ErrGenesis, errEmptyBundles, errTooManyCalls(maxManyCalls+1), errManyScript, errTraceTime), existingErrors...),
		Cost:   jsonrpc.Heavy(200), Concerns: jsonrpc.AnyContract, Handler: a.traceCallMany,
	}}
}

var traceCallManyConfigSchema = schema.Object(nil, func() schema.Members {
	all := maps.Clone(traceOptions)
	all["stateOverrides"] = eth.StateOverrides
	return all
}()).Named("TraceCallManyConfig", "The options of traces, and what the messages see of accounts in place of their contents.")

// errManyScript refuses a script: a worker runs one message, and has no state that an earlier one left.
var errManyScript = &trace.Error{Err: errors.New("tracers in JavaScript cannot trace bundles (want the name of a native tracer)")}

// traceCallMany answers debug_traceCallMany.
func (a *API) traceCallMany(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 1)
	q, config := readBundles(&args), a.traceConfig(&args, 2)
	if args.Given(2) {
		parameter.Decode(&args, 2, func(raw []byte) (any, error) {
			return nil, parseObject(raw, func(name jsonrpc.Name, value []byte) error {
				if name.Is("stateOverrides") {
					return jsonrpc.Set(&q.options.State, value, parseStateOverrides)
				}
				return nil
			})
		})
	}
	if args.Err != nil {
		return out, args.Err
	}
	q.options.Time = config.Time()
	if err := q.check(); err != nil {
		return out, err
	}
	if q.block.Tag == chain.Pending {
		return out, errTracePending
	}
	if config.IsScript() {
		return out, errManyScript
	}
	view, number, err := a.existing(ctx, q.block)
	if err != nil {
		return out, err
	}
	list := bundledList{out: append(out, '['), room: jsonrpc.RoomFor(ctx, out)}
	add := func(bundle, call int, run execute.TraceFunc) (err error) {
		list.begin(bundle, call)
		list.out, err = config.AppendCall(ctx, list.out, list.room, run)
		return err
	}
	if q.index == nil {
		err = view.TraceBundles(ctx, number, q.bundles, q.options, add)
	} else {
		err = q.replay(ctx, view, number, func(r *execute.Replay) error { return r.TraceBundles(ctx, q.bundles, q.options, add) })
	}
	if err != nil {
		return out, callError(ctx, err, out)
	}
	return list.end(len(q.bundles)), nil
}
