package api

import (
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// logMethods describes the method that searches logs.
func (a *API) logMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_getLogs", eth.Own{Handler: a.getLogs, Cost: jsonrpc.Heavy(50), Result: schema.Array(logSchema), Errors: logErrors}),
	}
}

// logErrors are the errors of methods that search logs.
var logErrors = eth.LogErrors(namedBlockErrors...)

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
	limited, cancel := context.WithTimeout(ctx, eth.MaxLogTime)
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
	var tooMany *chain.TooManyLogs
	switch {
	case errors.As(err, &tooMany):
		return eth.TooManyLogs(tooMany)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		if wanted == nil {
			return eth.SlowLogs(0, 0)
		}
		return eth.SlowLogs(wanted.From, wanted.To)
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
	err := view.Logs(ctx, wanted, eth.MaxLogs, func(log *query.Log) (err error) {
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
			return nil, nil, eth.ErrLogBlock
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
		if err := view.CheckEarliest(wanted.To); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case wanted.From > wanted.To:
		return nil, nil, eth.ErrLogRange
	case wanted.To > view.Head().Number:
		return nil, nil, eth.ErrLogsBeyondHead
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
