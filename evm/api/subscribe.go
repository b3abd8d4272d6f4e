package api

import (
	"context"
	"math"

	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
)

// subscriptionMethod is the method of the messages to subscribers.
const subscriptionMethod = "eth_subscription"

// methods are those by which clients say what they want to be told.
func (a *announcer) methods() jsonrpc.Handlers {
	return jsonrpc.Handlers{
		"eth_subscribe":                   a.subscribeMethod,
		"eth_unsubscribe":                 unsubscribe,
		"eth_newFilter":                   a.newLogFilter,
		"eth_newBlockFilter":              a.newBlockFilter,
		"eth_newPendingTransactionFilter": a.newPendingFilter,
		"eth_getFilterChanges":            a.getFilterChanges,
		"eth_getFilterLogs":               a.getFilterLogs,
		"eth_uninstallFilter":             a.uninstallFilter,
	}
}

// subscribeMethod answers eth_subscribe.
func (a *announcer) subscribeMethod(ctx context.Context, params, out []byte) ([]byte, error) {
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
			id, err = a.subscribeHeads(ctx)
		}
	case "logs":
		id, err = a.subscribeLogs(ctx, params)
	case "newPendingTransactions":
		id, err = a.subscribePending(ctx, params)
	case "syncing":
		if err = readArguments(params, 1, 1).err; err == nil {
			id, err = a.subscribeSyncing(ctx)
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

// subscribeHeads begins a subscription to newHeads.
func (a *announcer) subscribeHeads(ctx context.Context) (id string, err error) {
	n := new(newcomer)
	join := func(s *feed.Subscriber) {
		n.join = func() { a.heads.add(s) }
		a.begin(n)
	}
	leave := func(s *feed.Subscriber) {
		a.forgo(n)
		a.heads.remove(s)
	}
	return a.subscribe(ctx, join, leave)
}

// subscribeLogs begins a subscription to logs.
func (a *announcer) subscribeLogs(ctx context.Context, params []byte) (id string, err error) {
	args := readArguments(params, 2, 2)
	filter := argument(&args, 1, parseLogFilter)
	if args.err != nil {
		return "", args.err
	}
	watched, err := filter.watched()
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	err = a.logs.room(&filter)
	a.mu.Unlock()
	if err != nil {
		return "", err
	}
	one := &logSubscriber{watchedLogs: watched, asked: filter}
	n := &newcomer{join: func() { a.logs.add(one) }}
	join := func(s *feed.Subscriber) {
		one.Subscriber = s
		a.logs.admit(one)
		a.begin(n)
	}
	leave := func(*feed.Subscriber) {
		a.forgo(n)
		a.logs.remove(one)
	}
	return a.subscribe(ctx, join, leave)
}

// watched is which logs are told of as they come. They are of new blocks, so a range
// that begins or ends with the latest block has no bound there; one that begins
// there and ends elsewhere makes no sense, nor do safe and finalized blocks. A
// blockHash counts for eth_getFilterLogs alone.
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

// boundOfWatched is one end of a range of blocks: a number, or the latest block.
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
