package api

import (
	"cmp"
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
	"ashlar/upstream"
)

// logMethods describes the method that searches logs.
func (a *API) logMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_getLogs", eth.Own{Handler: a.getLogs, Cost: a.recomputing(50), Result: schema.Array(nodesResult), Errors: logErrors}),
	}
}

// logErrors are the errors of methods that search logs.
var logErrors = eth.LogErrors()

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
	limited, cancel := context.WithTimeout(ctx, cmp.Or(a.config.LogTime, eth.MaxLogTime))
	defer cancel()
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	begin := len(out)
	err = a.chain.Logs(limited, view, wanted, eth.MaxLogs, func(log *query.Log) error {
		if len(out) > begin {
			out = append(out, ',')
		}
		out = append(out, log.JSON...)
		return room.Check(len(out))
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return out, eth.SlowLogs(wanted.From, wanted.To)
	case err != nil && filter.Hash != nil && isUnknown(err):
		return out, eth.ErrLogBlock
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
		return nil, eth.ErrLogRange
	case wanted.To > view.Head().Number:
		return nil, eth.ErrLogsBeyondHead
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
