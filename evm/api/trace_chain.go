package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/evm/trace/script"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// traceChainMethods describes the methods that trace a range of blocks over a connection.
func (a *API) traceChainMethods(d *eth.Description) []jsonrpc.Method {
	kind := eth.Required("Kind", "What is subscribed to.", schema.Enum(traceChainName), jsonrpc.Given(traceChainName))
	start := eth.Required("Start", "The block before the first one that is traced.", eth.BlockNumber, a.example(func(s *sample) any { return hexutil.Uint64(max(s.block.Number, 1) - 1) }))
	end := d.BlockNumber
	end.Name, end.Summary = "End", "The last block that is traced."
	config := jsonrpc.Param{Name: "Config", Summary: "The tracer and its options; the struct logger by default.", Schema: traceConfigSchema}
	return []jsonrpc.Method{
		{
			Name: "debug_subscribe", Summary: "Traces a range of blocks; each block's traces follow as a notification that costs as much as the call.",
			Params: []jsonrpc.Param{kind, start, end, config}, Result: eth.Result("Subscription identifier", eth.Identifier),
			Errors: append(errorsOf(feed.Supported(context.Background())), existingErrors...),
			Cost:   jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Stream: true, Handler: a.debugSubscribe,
		},
		{
			Name: "debug_unsubscribe", Summary: "Ends a subscription of the connection.",
			Params: []jsonrpc.Param{{
				Name: "Subscription identifier", Summary: "The identifier that debug_subscribe returned.", Schema: eth.Identifier, Required: true, From: "debug_subscribe",
			}},
			Result: eth.Result("Success", schema.Boolean), Errors: errorsOf(feed.ErrSubscriptionNotFound),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Stream: true, Handler: feed.Unsubscribe,
		},
	}
}

// traceChainName is the only kind of subscription of debug_subscribe.
const traceChainName = "traceChain"

// debugSubscribe answers debug_subscribe.
func (a *API) debugSubscribe(ctx context.Context, params, out []byte) ([]byte, error) {
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok {
		return out, feed.Supported(ctx)
	}
	name, err := feed.Kind(params)
	if err != nil {
		return out, err
	}
	if name != traceChainName {
		return out, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no %q subscription in debug namespace", name)
	}
	args := parameter.Read(params, 4, 3)
	start, end, config := args.BlockNumber(1), args.BlockNumber(2), a.traceConfig(&args, 3)
	if args.Err != nil {
		return out, args.Err
	}
	if start.Tag == chain.Pending || end.Tag == chain.Pending {
		return out, errTracePending
	}
	_, first, err := a.existing(ctx, start)
	if err != nil {
		return out, err
	}
	_, last, err := a.existing(ctx, end)
	if err != nil {
		return out, err
	}
	if first >= last {
		return out, &trace.Error{Err: fmt.Errorf("end block (#%d) needs to come after start block (#%d)", last, first)}
	}
	traces := &chainTraces{api: a, config: config, next: first + 1, last: last}
	id, err := notifier.StartSteps(traces.step)
	if err != nil {
		return out, err
	}
	return jsonrpc.AppendString(out, id), nil
}

// chainTraces makes the messages of a subscription to traceChain.
type chainTraces struct {
	api        *API
	config     *trace.Config
	next, last uint64 // blocks
}

// maxEmptyBlocks is how many blocks without transactions one step passes over.
const maxEmptyBlocks = 1000

// step appends the message of the next block that has transactions, or of the last block.
// It implements [jsonrpc.Step].
func (t *chainTraces) step(ctx context.Context, id string, out []byte) ([]byte, error) {
	if t.next > t.last {
		return out, io.EOF
	}
	view, err := t.api.chain.View()
	if err != nil {
		return out, err
	}
	for range maxEmptyBlocks {
		input, err := view.Input(ctx, t.next)
		if err != nil {
			return out, err
		}
		if input.Block.Len() > 0 || t.next == t.last {
			if out, err = t.appendBlock(ctx, id, out, input); err == nil {
				t.next++
			}
			return out, err
		}
		t.next++
	}
	return out, nil
}

// appendBlock appends the message of a block:
//
//	{"block":"0x1","hash":"0x...","traces":[{"txHash":"0x...","result":...}, ...]}
//
// When a transaction cannot be traced, its entry has the error, and those after it are null.
func (t *chainTraces) appendBlock(ctx context.Context, id string, out []byte, input query.Input) ([]byte, error) {
	room := jsonrpc.RoomFor(ctx, out)
	hash := input.Block.Hash()
	hashes, err := t.api.hashes.ofInput(&input)
	if err != nil {
		return out, err
	}
	out = jsonrpc.AppendNotification(out, "debug_subscription", id)
	out = strconv.AppendUint(append(out, `{"block":"0x`...), input.Block.Header().Number.Uint64(), 16)
	out = appendHash(append(out, `","hash":`...), hash)
	out = append(out, `,"traces":[`...)

	count := input.Block.Len()
	traced := 0 // transactions whose entry is complete
	err = t.api.tracing(ctx, t.config, input, 0, count, room, func(next nextTrace) error {
		var failed error
		for i := range count {
			entry, err := next(append(appendTransactionHash(out, i, hashes), `,"result":`...))
			// A script that fails goes on with the next transaction.
			if failure := (*script.Failed)(nil); err != nil && !errors.As(err, &failure) {
				return err
			}
			switch {
			case failed != nil:
			case err != nil:
				failed = err
			default:
				out, traced = append(entry, '}'), i+1
			}
		}
		return failed
	})
	if err != nil {
		reason := traceFailure(err)
		if reason == "" || traced == count {
			return out, err
		}
		out = append(appendTransactionHash(out, traced, hashes), `,"error":`...)
		out = append(jsonrpc.AppendString(out, reason), '}')
		for range count - traced - 1 {
			out = append(out, ",null"...)
		}
	}
	return append(append(out, "]}"...), jsonrpc.NotificationEnd...), nil
}

// appendTransactionHash appends the beginning of a transaction's entry in an array.
func appendTransactionHash(out []byte, i int, hashes transactionHashes) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	return appendHex(append(out, `{"txHash":`...), hashes.hash(i))
}

// traceFailure is the reason for a client why a transaction could not be traced, or "" if
// err says nothing about the transaction.
func traceFailure(err error) string {
	var traced *trace.Error
	var whole *jsonrpc.Error
	switch {
	case errors.As(err, &traced):
		return traced.Error()
	case errors.As(err, &whole) && whole.Code == jsonrpc.CodeTooLarge:
		return whole.Message
	case errors.Is(err, context.DeadlineExceeded):
		return "request timed out"
	}
	return ""
}
