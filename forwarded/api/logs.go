package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
	"ashlar/upstream"
)

// The limits of eth_getLogs.
const (
	maxLogs    = 10_000
	maxLogTime = 10 * time.Second
)

func (a *API) logMethods(p parameters) []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_getLogs", Summary: "Returns the logs that match a filter.",
		Params: []jsonrpc.Param{p.filter}, Result: result("Log objects", schema.Array(object)), Errors: logErrors,
		Cost: a.recomputing(50), Concerns: parameter.Concerning(parameter.Emitters(0)), Handler: a.getLogs,
	}}
}

// logErrors are the errors of methods that search logs.
var logErrors = []*jsonrpc.Error{
	{Code: jsonrpc.CodeLimitExceeded, Message: "query returned more than 10000 results", Data: "Try with this block range [0x1, 0x2f]."},
	{Code: jsonrpc.CodeLimitExceeded, Message: "query timeout exceeded", Data: "Try with this block range [0x1, 0x18]."},
	errRange, errBeyondHead,
}

var (
	errRange      = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
	errBeyondHead = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "block range extends beyond current head block"}
	errBlock      = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "unknown block"}
)

// getLogs answers eth_getLogs.
func (a *API) getLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	filter := parameter.Decode(&args, 0, parameter.ParseLogFilter)
	if args.Err != nil {
		return out, args.Err
	}
	if err := filter.CheckSize(); err != nil {
		return out, err
	}
	return a.appendLogs(ctx, filter, out)
}

// appendLogs appends the array of the logs that a filter selects.
func (a *API) appendLogs(ctx context.Context, filter parameter.LogFilter, out []byte) ([]byte, error) {
	view, err := a.chain.View(ctx)
	if err != nil {
		return out, err
	}
	wanted, err := resolveLogs(view, &filter)
	if err != nil {
		return out, err
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(a.config.LogTime, maxLogTime))
	defer cancel()
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	begin := len(out)
	err = a.chain.Logs(limited, view, wanted, maxLogs, func(log *query.Log) error {
		if len(out) > begin {
			out = append(out, ',')
		}
		out = append(out, log.JSON...)
		return room.Check(len(out))
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return out, parameter.SlowLogs(wanted.From, wanted.To)
	case err != nil && filter.Hash != nil && isUnknown(err):
		return out, errBlock
	}
	return append(out, ']'), err
}

// resolveLogs resolves the block range of a filter in a view.
func resolveLogs(view *forwarded.View, f *parameter.LogFilter) (wanted *query.Filter, err error) {
	wanted = &query.Filter{Addresses: f.Addresses, Topics: f.Topics, Hash: f.Hash}
	if f.Hash != nil {
		return wanted, nil
	}
	if wanted.From, err = resolveBound(view, f.From); err != nil {
		return nil, err
	}
	if wanted.To, err = resolveBound(view, f.To); err != nil {
		return nil, err
	}
	switch {
	case wanted.From > wanted.To:
		return nil, errRange
	case wanted.To > view.Head().Number:
		return nil, errBeyondHead
	}
	return wanted, nil
}

// resolveBound resolves one end of a range, which may be above the head.
func resolveBound(view *forwarded.View, id chain.BlockID) (uint64, error) {
	if id.Tag == chain.NoTag {
		return id.Number, nil
	}
	block, err := query.Resolve(view, id)
	return block.Number, err
}

// isUnknown reports whether a node says that it does not have a block.
func isUnknown(err error) bool {
	var node *upstream.NodeError
	translated := new(jsonrpc.Error)
	return errors.As(err, &node) && upstream.LacksBlock(node) || errors.As(translate(err), &translated) && translated.Code == jsonrpc.CodePruned
}

// tooManyLogs is the error if a filter matches more logs than the limit. Indexers look for
// the sentence in data and continue with the range that it suggests.
func tooManyLogs(e *query.TooManyLogs) *jsonrpc.Error {
	answer := &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: e.Error()}
	if e.Fits {
		answer.Data = fmt.Sprintf("Try with this block range [%#x, %#x].", e.From, e.To)
	}
	return answer
}
