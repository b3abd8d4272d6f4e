package api

import (
	"context"
	"fmt"

	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// subscriptionMethod is the method of notifications.
const subscriptionMethod = "eth_subscription"

// methods describes the methods by which clients subscribe, and install and poll filters.
func (p *publisher) methods(d *eth.Description) []jsonrpc.Method {
	emitters := p.polled.Concerning((*polledFilter).emitters)
	options := jsonrpc.Param{
		Name: "Options", Summary: "For logs a filter; for newPendingTransactions whether transactions are sent whole; for transactionReceipts whose receipts.",
		Schema: schema.AnyOf(eth.Filter, schema.Boolean, receiptFilterSchema),
	}
	return []jsonrpc.Method{
		d.Method("eth_subscribe", eth.Own{
			Handler: p.subscribeMethod, Concerns: subscribedContracts,
			Params: []jsonrpc.Param{eth.SubscriptionKinds("newHeads", "logs", "newPendingTransactions", "syncing", "transactionReceipts"), options},
		}),
		d.Method("eth_unsubscribe", eth.Own{}),
		d.Method("eth_newFilter", eth.Own{Handler: p.newLogFilter}),
		d.Method("eth_newBlockFilter", eth.Own{Handler: p.newBlockFilter}),
		{
			Name: "eth_newPendingTransactionFilter", Summary: "Installs a filter for pending transactions, to be polled.",
			Params: []jsonrpc.Param{{Name: "Whole transactions", Summary: "Whether transactions are returned whole, not as hashes.", Schema: schema.Boolean}},
			Result: eth.Result("Filter identifier", eth.Identifier),
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: p.newPendingFilter,
		},
		d.Method("eth_getFilterChanges", eth.Own{
			Handler: p.polled.Changes(p.appendChanges), Concerns: emitters,
			Result: schema.Array(schema.AnyOf(logSchema, eth.Hash, transactionSchema)),
		}),
		d.Method("eth_getFilterLogs", eth.Own{
			Handler: p.getFilterLogs, Cost: jsonrpc.Heavy(50), Concerns: emitters, Result: schema.Array(logSchema), Errors: append(errorsOf(feed.ErrFilterNotFound), logErrors...),
		}),
		d.Method("eth_uninstallFilter", eth.Own{Handler: p.polled.Uninstall}),
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
