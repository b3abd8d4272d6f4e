package api

import (
	"context"
	"math"

	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
)

// subscriptionMethod is the method of notifications.
const subscriptionMethod = "eth_subscription"

// methods are the methods of subscriptions and filters.
func (p *publisher) methods() jsonrpc.Handlers {
	return jsonrpc.Handlers{
		"eth_subscribe":                   p.subscribeMethod,
		"eth_unsubscribe":                 unsubscribe,
		"eth_newFilter":                   p.newLogFilter,
		"eth_newBlockFilter":              p.newBlockFilter,
		"eth_newPendingTransactionFilter": p.newPendingFilter,
		"eth_getFilterChanges":            p.getFilterChanges,
		"eth_getFilterLogs":               p.getFilterLogs,
		"eth_uninstallFilter":             p.uninstallFilter,
	}
}

// subscribeMethod answers eth_subscribe.
func (p *publisher) subscribeMethod(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := feed.Supported(ctx); err != nil {
		return out, err
	}
	name, err := subscriptionName(params)
	if err != nil {
		return out, err
	}
	var id string
	switch name {
	case "newHeads":
		if err = readArguments(params, 1, 1).err; err == nil {
			id, err = p.subscribeHeads(ctx)
		}
	case "logs":
		id, err = p.subscribeLogs(ctx, params)
	case "newPendingTransactions":
		id, err = p.subscribePending(ctx, params)
	case "syncing":
		if err = readArguments(params, 1, 1).err; err == nil {
			id, err = p.subscribeSyncing(ctx)
		}
	default:
		err = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no %q subscription in eth namespace", name)
	}
	if err != nil {
		return out, err
	}
	return jsonrpc.AppendString(out, id), nil
}

// subscriptionName is the first argument of eth_subscribe.
func subscriptionName(params []byte) (string, error) {
	elements, ok := jsonrpc.Array(params)
	if !ok {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "non-array args"}
	}
	if elements.Next() {
		if name, ok := jsonrpc.String(elements.Value()); ok {
			return string(name), nil
		}
	}
	return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "expected subscription name as first argument"}
}

// unsubscribe answers eth_unsubscribe.
func unsubscribe(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	id := argument(&args, 0, parseID)
	if args.err != nil {
		return out, args.err
	}
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok || !notifier.Stop(id) {
		return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "subscription not found"}
	}
	return append(out, "true"...), nil
}

// parseID decodes the ID of a subscription or a filter, which may be any string.
func parseID(raw []byte) (string, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return "", errNonString
	}
	return string(text), nil
}

// subscribeHeads starts a subscription to newHeads.
func (p *publisher) subscribeHeads(ctx context.Context) (id string, err error) {
	j := new(joiner)
	join := func(s *feed.Subscriber) {
		j.join = func() { p.heads.add(s) }
		p.join(j)
	}
	leave := func(s *feed.Subscriber) {
		p.cancelJoin(j)
		p.heads.remove(s)
	}
	return p.subscribe(ctx, join, leave)
}

// subscribeLogs starts a subscription to logs.
func (p *publisher) subscribeLogs(ctx context.Context, params []byte) (id string, err error) {
	args := readArguments(params, 2, 2)
	filter := argument(&args, 1, parseLogFilter)
	if args.err != nil {
		return "", args.err
	}
	watched, err := filter.watched()
	if err != nil {
		return "", err
	}
	one, err := p.logs.reserve(jsonrpc.CallerFrom(ctx), filter, watched)
	if err != nil {
		return "", err
	}
	j := &joiner{join: func() { p.logs.add(one) }}
	join := func(s *feed.Subscriber) {
		one.Subscriber = s
		p.join(j)
	}
	leave := func(*feed.Subscriber) {
		p.cancelJoin(j)
		p.logs.remove(one)
	}
	if id, err = p.subscribe(ctx, join, leave); err != nil {
		p.logs.release(one)
	}
	return id, err
}

// watched returns the selection of new logs. As they are of new blocks, a range that
// begins or ends with the latest block is unbounded there. A range from the latest block
// to another one makes no sense and is refused, as are safe and finalized blocks. A
// blockHash counts in eth_getFilterLogs only.
func (f *logFilter) watched() (watchedLogs, error) {
	asked := &query.Filter{Addresses: f.addresses, Topics: f.topics}
	watched := watchedLogs{Matcher: asked.Matcher(), to: math.MaxUint64}
	if err := f.checkParameters(); err != nil {
		return watched, err
	}
	if f.from.Tag == query.Pending || f.to.Tag == query.Pending {
		return watched, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "pending logs are not supported"}
	}
	from, fromLatest, fromOK := boundOfWatched(f.from)
	to, toLatest, toOK := boundOfWatched(f.to)
	if !fromOK || !toOK || fromLatest && !toLatest || !fromLatest && !toLatest && from > to {
		return watched, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
	}
	watched.from = from
	if !toLatest {
		watched.to = to
	}
	return watched, nil
}

// boundOfWatched resolves one end of a range of blocks: a number, or the latest block.
func boundOfWatched(id query.BlockID) (number uint64, latest, ok bool) {
	switch id.Tag {
	case query.NoTag:
		return id.Number, false, true
	case query.Earliest:
		return 0, false, true
	case query.Latest:
		return 0, true, true
	}
	return 0, false, false
}
