package api

import (
	"context"
	"fmt"

	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// subscriptionMethod is the method of notifications.
const subscriptionMethod = "eth_subscription"

// methods describes the methods by which clients subscribe, and install and poll filters.
func (p *publisher) methods() []jsonrpc.Method {
	identifier := result("Filter identifier", idSchema)
	expired := append(errorsOf(feed.ErrFilterNotFound), logErrors...)
	return []jsonrpc.Method{
		{
			Name: "eth_subscribe", Summary: "Subscribes the connection to what happens on the chain; messages follow as notifications.",
			Params: []jsonrpc.Param{
				required("Kind", "What the messages are about.", schema.Enum("newHeads", "logs", "newPendingTransactions", "syncing", "transactionReceipts"), jsonrpc.Given("newHeads")),
				{
					Name: "Options", Summary: "For logs a filter; for newPendingTransactions whether transactions are sent whole; for transactionReceipts whose receipts.",
					Schema: schema.AnyOf(filterSchema, schema.Boolean, receiptFilterSchema),
				},
			},
			Result: result("Subscription identifier", idSchema), Errors: errorsOf(feed.Supported(context.Background())),
			Cost: jsonrpc.Light(10), Concerns: subscribedContracts, Stream: true, Handler: p.subscribeMethod,
		},
		{
			Name: "eth_unsubscribe", Summary: "Ends a subscription of the connection.",
			Params: []jsonrpc.Param{{
				Name: "Subscription identifier", Summary: "The identifier that eth_subscribe returned.", Schema: idSchema, Required: true, From: "eth_subscribe",
			}},
			Result: result("Success", schema.Boolean), Errors: errorsOf(feed.ErrSubscriptionNotFound),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Stream: true, Handler: feed.Unsubscribe,
		},
		{
			Name: "eth_newFilter", Summary: "Installs a filter for logs, to be polled.",
			Params: []jsonrpc.Param{required("Filter", "Which logs are wanted.", filterSchema, p.api.example((*sample).watched))}, Result: identifier,
			Cost: jsonrpc.Light(10), Concerns: parameter.Concerning(parameter.Emitters(0)), Handler: p.newLogFilter,
		},
		{
			Name: "eth_newBlockFilter", Summary: "Installs a filter for hashes of new blocks, to be polled.",
			Result: identifier,
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: p.newBlockFilter,
		},
		{
			Name: "eth_newPendingTransactionFilter", Summary: "Installs a filter for pending transactions, to be polled.",
			Params: []jsonrpc.Param{{Name: "Whole transactions", Summary: "Whether transactions are returned whole, not as hashes.", Schema: schema.Boolean}},
			Result: identifier,
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: p.newPendingFilter,
		},
		{
			Name: "eth_getFilterChanges", Summary: "Returns what has come since the filter was installed or last polled.",
			Params: []jsonrpc.Param{filterID("eth_newFilter")},
			Result: result("Log objects", schema.Array(schema.AnyOf(logSchema, hashSchema, transactionSchema))), Errors: expired,
			// Clients poll often, mostly for little, but one poll can return as much as eth_getLogs.
			Cost: jsonrpc.Heavy(20), Concerns: p.polledContracts, Handler: p.getFilterChanges,
		},
		{
			Name: "eth_getFilterLogs", Summary: "Returns all logs that match a filter, as eth_getLogs does.",
			Params: []jsonrpc.Param{filterID("eth_newFilter")}, Result: result("Log objects", schema.Array(logSchema)), Errors: expired,
			Cost: jsonrpc.Heavy(50), Concerns: p.polledContracts, Handler: p.getFilterLogs,
		},
		{
			Name: "eth_uninstallFilter", Summary: "Removes a filter and returns whether there was one.",
			Params: []jsonrpc.Param{filterID("eth_newFilter")}, Result: result("Success", schema.Boolean),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: p.polled.Uninstall,
		},
	}
}

// subscribedContracts is the Concerns of eth_subscribe. It refuses unknown kinds of
// subscriptions.
func subscribedContracts(_ context.Context, params []byte) (jsonrpc.Concern, error) {
	kind, err := feed.Kind(params)
	if err != nil {
		return jsonrpc.Concern{}, parameter.Unreadable(err)
	}
	switch kind {
	case "newHeads", "newPendingTransactions", "syncing", "transactionReceipts":
		return jsonrpc.None(), nil
	case "logs":
		addresses, err := parameter.Emitters(1)(params)
		if err != nil {
			return jsonrpc.Concern{}, parameter.Unreadable(err)
		}
		return parameter.About(addresses), nil
	}
	return jsonrpc.Concern{}, fmt.Errorf("the contracts of %q subscriptions are unknown", kind)
}

// subscribeMethod answers eth_subscribe.
func (p *publisher) subscribeMethod(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := feed.Supported(ctx); err != nil {
		return out, err
	}
	name, err := feed.Kind(params)
	if err != nil {
		return out, err
	}
	var id string
	switch name {
	case "newHeads":
		if err = parameter.Read(params, 1, 1).Err; err == nil {
			id, err = p.subscribeHeads(ctx)
		}
	case "logs":
		id, err = p.subscribeLogs(ctx, params)
	case "newPendingTransactions":
		id, err = p.subscribePending(ctx, params)
	case "syncing":
		if err = parameter.Read(params, 1, 1).Err; err == nil {
			id, err = p.subscribeSyncing(ctx)
		}
	case "transactionReceipts":
		id, err = p.subscribeReceipts(ctx, params)
	default:
		err = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no %q subscription in eth namespace", name)
	}
	if err != nil {
		return out, err
	}
	return jsonrpc.AppendString(out, id), nil
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
	args := parameter.Read(params, 2, 2)
	filter := parameter.Decode(&args, 1, parameter.ParseLogFilter)
	if args.Err != nil {
		return "", args.Err
	}
	watched, err := watch(&filter)
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

// watch returns the selection of new logs. A blockHash counts in eth_getFilterLogs only.
func watch(f *parameter.LogFilter) (watched watchedLogs, err error) {
	asked := &query.Filter{Addresses: f.Addresses, Topics: f.Topics}
	watched.Matcher = asked.Matcher()
	if err := f.CheckSize(); err != nil {
		return watched, err
	}
	watched.from, watched.to, err = f.NewBlocks()
	return watched, err
}
