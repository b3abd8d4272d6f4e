package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// The limits of eth_getLogs.
const (
	maxLogs    = 10_000
	maxLogTime = 10 * time.Second
)

// logMethods describes the method that searches logs.
func (a *API) logMethods(p parameters) []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_getLogs", Summary: "Returns the logs that match a filter.",
		Params: []jsonrpc.Param{p.filter}, Result: result("Log objects", schema.Array(logSchema)), Errors: logErrors,
		Cost: jsonrpc.Heavy(50), Concerns: parameter.Concerning(parameter.Emitters(0)), Handler: a.getLogs,
	}}
}

// logErrors are the errors of methods that search logs.
var logErrors = append([]*jsonrpc.Error{
	{Code: jsonrpc.CodeLimitExceeded, Message: "query returned more than 10000 results", Data: "Try with this block range [0x1, 0x2f]."},
	{Code: jsonrpc.CodeLimitExceeded, Message: "query timeout exceeded", Data: "Try with this block range [0x1, 0x18]."},
	{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"},
	{Code: jsonrpc.CodeInvalidParams, Message: "block range extends beyond current head block"},
	{Code: jsonrpc.CodeServer, Message: "unknown block"},
}, namedBlockErrors...)

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
	return a.appendFilteredLogs(ctx, filter, out)
}

// appendFilteredLogs appends the array of the logs that a filter selects.
func (a *API) appendFilteredLogs(ctx context.Context, filter parameter.LogFilter, out []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, maxLogTime)
	defer cancel()
	view, wanted, err := a.resolveLogs(limited, filter)
	if err == nil {
		out, err = a.appendLogsOf(limited, view, wanted, out)
	}
	if err != nil {
		return out, logsError(ctx, wanted, err)
	}
	return out, nil
}

// logsError returns the error for a failed query of logs. The caller's time limit is that
// of ctx; if the query has timed out but ctx has not, the query's own limit was reached. wanted
// is nil if its range could not be resolved.
func logsError(ctx context.Context, wanted *query.Filter, err error) error {
	var tooMany *query.TooManyLogs
	switch {
	case errors.As(err, &tooMany):
		return tooManyLogs(tooMany)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		if wanted == nil {
			return parameter.SlowLogs(0, 0)
		}
		return parameter.SlowLogs(wanted.From, wanted.To)
	}
	return err
}

// appendLogsOf appends the array of the matching logs.
func (a *API) appendLogsOf(ctx context.Context, view *query.View, wanted *query.Filter, out []byte) ([]byte, error) {
	var place logPlace
	var hashes logHashes
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	begin := len(out)
	err := view.Logs(ctx, wanted, maxLogs, func(log *query.Log) (err error) {
		if place.blockHash != log.Block.Hash || len(out) == begin {
			place.enter(log.Block, log.Time)
			place.pending, place.removed = view.IsPending(log.Block.Number), view.IsDropped(log.Block.Number)
			hashes.enter()
		}
		place.transaction, place.position = uint64(log.Transaction), log.Index
		if place.transactionHash, err = hashes.of(a.hashes, log); err != nil {
			return err
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		out = appendLog(out, &log.Log, &place)
		return room.Check(len(out))
	})
	return append(out, ']'), err
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

// resolveLogs takes a view and resolves the block range of a filter in it.
func (a *API) resolveLogs(ctx context.Context, f parameter.LogFilter) (*query.View, *query.Filter, error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, nil, err
	}
	wanted := &query.Filter{Addresses: f.Addresses, Topics: f.Topics}
	if f.Hash != nil {
		view, number, err := view.Resolve(ctx, chain.BlockID{Hash: f.Hash})
		if errors.Is(err, query.ErrUnknownHash) {
			return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "unknown block"}
		}
		wanted.From, wanted.To = number, number
		return view, wanted, err
	}
	if f.From.Tag == chain.Pending || f.To.Tag == chain.Pending {
		if view, _, err = view.Resolve(ctx, chain.BlockID{Tag: chain.Pending}); err != nil {
			return nil, nil, err
		}
	}
	if wanted.From, err = resolveBound(ctx, view, f.From); err != nil {
		return nil, nil, err
	}
	if wanted.To, err = resolveBound(ctx, view, f.To); err != nil {
		return nil, nil, err
	}
	if f.From.Tag == chain.Earliest && wanted.From > wanted.To { // it ends before the first block that is stored
		if _, _, err := view.Resolve(ctx, f.To); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case wanted.From > wanted.To:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
	case wanted.To > view.Head().Number:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "block range extends beyond current head block"}
	}
	return view, wanted, nil
}

// resolveBound resolves one end of a range, which may be above the head.
func resolveBound(ctx context.Context, view *query.View, id chain.BlockID) (uint64, error) {
	if id.Tag == chain.NoTag {
		return id.Number, nil
	}
	_, number, err := view.Resolve(ctx, id)
	return number, err
}
