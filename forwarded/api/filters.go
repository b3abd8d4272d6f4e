package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"ashlar/feed"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

var (
	// errFilterNotFound also stands for expired filters and those of other keys.
	errFilterNotFound       = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "filter not found"}
	errSubscriptionNotFound = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "subscription not found"}
)

// filterBytes is the memory of a filter or subscription without its addresses and topics.
const filterBytes = 512

// polledFilter is a filter that is read by polling.
type polledFilter struct {
	asked *logFilter // nil: hashes of blocks
	start

	reading  sync.Mutex // held while the filter is read, so that nothing is returned twice
	position uint64     // guarded by reading: in the journal, after the last entry returned
}

// feedMethods describes the methods by which clients subscribe, and install and poll filters.
func (a *API) feedMethods(p parameters) []jsonrpc.Method {
	id := schema.Text("Identifier", "The identifier of a subscription or a filter.", ".*")
	from := func(method string) jsonrpc.Param {
		return jsonrpc.Param{Name: "Identifier", Summary: "The identifier that " + method + " returned.", Schema: id, Required: true, From: method}
	}
	kinds := required("Kind", "What the messages are about.", schema.Enum("newHeads", "logs"), jsonrpc.Given("newHeads"))
	identifier, expired := result("Filter identifier", id), append([]*jsonrpc.Error{errFilterNotFound}, logErrors...)
	return []jsonrpc.Method{
		{
			Name: "eth_subscribe", Summary: "Subscribes the connection to new heads or logs; messages follow as notifications.",
			Params: []jsonrpc.Param{kinds, optional("Options", "For logs a filter.", filter, nil)}, Result: result("Subscription identifier", id),
			Cost: jsonrpc.Light(10), Concerns: subscribedContracts, Stream: true, Handler: a.publisher.subscribeMethod,
		},
		{
			Name: "eth_unsubscribe", Summary: "Ends a subscription of the connection.",
			Params: []jsonrpc.Param{from("eth_subscribe")}, Result: result("Success", schema.Boolean), Errors: []*jsonrpc.Error{errSubscriptionNotFound},
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Stream: true, Handler: unsubscribe,
		},
		{
			Name: "eth_newFilter", Summary: "Installs a filter for logs, to be polled.",
			Params: []jsonrpc.Param{required("Filter", "Which logs are wanted.", filter, jsonrpc.Given(map[string]any{}))}, Result: identifier,
			Cost: jsonrpc.Light(10), Concerns: concerning(emitters), Handler: a.publisher.newLogFilter,
		},
		{
			Name: "eth_newBlockFilter", Summary: "Installs a filter for hashes of new blocks, to be polled.", Result: identifier,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.publisher.newBlockFilter,
		},
		{
			Name: "eth_getFilterChanges", Summary: "Returns what has come since the filter was installed or last polled.",
			Params: []jsonrpc.Param{from("eth_newFilter")}, Result: result("Log objects", schema.Array(object)), Errors: expired,
			Cost: jsonrpc.Heavy(20), Concerns: a.publisher.polledContracts, Handler: a.publisher.getFilterChanges,
		},
		{
			Name: "eth_getFilterLogs", Summary: "Returns all logs that match a filter, as eth_getLogs does.",
			Params: []jsonrpc.Param{from("eth_newFilter")}, Result: result("Log objects", schema.Array(object)), Errors: expired,
			Cost: jsonrpc.Heavy(50), Concerns: a.publisher.polledContracts, Handler: a.getFilterLogs,
		},
		{
			Name: "eth_uninstallFilter", Summary: "Removes a filter and returns whether there was one.",
			Params: []jsonrpc.Param{from("eth_newFilter")}, Result: result("Success", schema.Boolean),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.publisher.uninstallFilter,
		},
	}
}

// bytes returns the memory of the filter's addresses and topics.
func (f *logFilter) bytes() int {
	bytes := 48 * len(f.Addresses)
	for _, topics := range f.Topics {
		bytes += 80 * len(topics)
	}
	return bytes
}

// within reports whether logs of a new block are selected. A range that begins or ends with a
// tag is open there.
func (f *logFilter) within(number uint64) bool {
	from, to := uint64(0), uint64(math.MaxUint64)
	if f.from.Tag == query.NoTag {
		from = f.from.Number
	}
	if f.to.Tag == query.NoTag {
		to = f.to.Number
	}
	return from <= number && number <= to
}

// parseWatched decodes the filter of a subscription or a polled filter.
func parseWatched(raw []byte) (*logFilter, error) {
	f, err := parseFilter(raw)
	switch {
	case err != nil:
		return nil, err
	case f.Hash != nil:
		return nil, errors.New("blockHash selects no new logs (want fromBlock and toBlock, or neither)")
	}
	return &f, f.check()
}

// subscribedContracts is the Concerns of eth_subscribe.
func subscribedContracts(_ context.Context, params []byte) (jsonrpc.Concern, error) {
	args := readArguments(params, 2, 1)
	kind := argument(&args, 0, parseText)
	switch {
	case args.err != nil:
		return jsonrpc.Concern{}, unreadable(args.err)
	case kind == "newHeads":
		return jsonrpc.None(), nil
	case kind != "logs":
		return jsonrpc.Concern{}, fmt.Errorf("the contracts of %q subscriptions are unknown", kind)
	}
	filter := argument(&args, 1, parseFilter)
	if args.err != nil {
		return jsonrpc.Concern{}, unreadable(args.err)
	}
	return about(filter.Addresses), nil
}

// parseText decodes a text.
func parseText(raw []byte) (string, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return "", errors.New("non-string value, want a text")
	}
	return string(text), nil
}

// subscribeMethod answers eth_subscribe.
func (p *publisher) subscribeMethod(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := feed.Supported(ctx); err != nil {
		return out, err
	}
	args := readArguments(params, 2, 1)
	kind := argument(&args, 0, parseText)
	var asked *logFilter
	switch {
	case args.err != nil:
	case kind == "logs":
		if args = readArguments(params, 2, 2); args.err == nil {
			asked = argument(&args, 1, parseWatched)
		}
	case kind != "newHeads":
		return out, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no %q subscription in eth namespace", kind)
	}
	if args.err != nil {
		return out, args.err
	}
	id, err := p.subscribe(ctx, asked)
	if err != nil {
		return out, err
	}
	return jsonrpc.AppendString(out, id), nil
}

// unsubscribe answers eth_unsubscribe.
func unsubscribe(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	id := argument(&args, 0, parseText)
	if args.err != nil {
		return out, args.err
	}
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok || !notifier.Stop(id) {
		return out, errSubscriptionNotFound
	}
	return append(out, "true"...), nil
}

// newLogFilter answers eth_newFilter.
func (p *publisher) newLogFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	asked := argument(&args, 0, parseWatched)
	if args.err != nil {
		return out, args.err
	}
	return p.install(ctx, asked, out)
}

// newBlockFilter answers eth_newBlockFilter.
func (p *publisher) newBlockFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	return p.install(ctx, nil, out)
}

// install adds a filter that starts now, and appends its ID. Before the first head it waits.
func (p *publisher) install(ctx context.Context, asked *logFilter, out []byte) ([]byte, error) {
	if _, err := p.chain.View(ctx); err != nil {
		return out, err
	}
	bytes := filterBytes
	if asked != nil {
		bytes += asked.bytes()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &polledFilter{asked: asked, start: p.begin(), position: p.blocks.End()}
	id, err := p.polled.Add(jsonrpc.CallerFrom(ctx), f, bytes)
	if err != nil {
		return out, err
	}
	p.filters++
	return jsonrpc.AppendString(out, id), nil
}

// polledArgument finds the filter that a call names as its only argument.
func (p *publisher) polledArgument(ctx context.Context, params []byte) (f *polledFilter, id string, err error) {
	args := readArguments(params, 1, 1)
	id = argument(&args, 0, parseText)
	if args.err != nil {
		return nil, "", args.err
	}
	f, ok := p.polled.Use(jsonrpc.CallerFrom(ctx), id)
	if !ok {
		return nil, "", errFilterNotFound
	}
	return f, id, nil
}

// polledContracts is the Concerns of methods that read a filter.
func (p *publisher) polledContracts(ctx context.Context, params []byte) (jsonrpc.Concern, error) {
	f, _, err := p.polledArgument(ctx, params)
	switch {
	case errors.Is(err, errFilterNotFound):
		return jsonrpc.None(), nil // the call fails
	case err != nil:
		return jsonrpc.Concern{}, unreadable(err)
	case f.asked == nil:
		return jsonrpc.None(), nil
	}
	return about(f.asked.Addresses), nil
}

// getFilterChanges answers eth_getFilterChanges.
func (p *publisher) getFilterChanges(ctx context.Context, params, out []byte) ([]byte, error) {
	f, id, err := p.polledArgument(ctx, params)
	if err != nil {
		return out, err
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	updates, _, ok := p.blocks.Since(f.position)
	if !ok { // it has fallen behind
		p.polled.Remove(jsonrpc.CallerFrom(ctx), id)
		return out, errFilterNotFound
	}
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	count := 0
	add := func(entry []byte) {
		if count++; count > 1 {
			out = append(out, ',')
		}
		out = append(out, entry...)
	}
	for _, u := range updates {
		if count >= maxLogs {
			break
		}
		before, counted := len(out), count
		f.append(u, add)
		if err := room.Check(len(out) + 1); err != nil {
			if counted == 0 {
				p.polled.Remove(jsonrpc.CallerFrom(ctx), id)
				return out, err
			}
			out = out[:before] // the rest is for the next call
			break
		}
		f.position++
	}
	return append(out, ']'), nil
}

// append passes the entries that the filter selects from an update to add.
func (f *polledFilter) append(u *update, add func([]byte)) {
	switch {
	case !f.wants(u):
	case f.asked == nil && !u.dropped:
		add(jsonrpc.AppendString(nil, u.block.Hash.Hex()))
	case f.asked != nil && f.asked.within(u.block.Number):
		for i := range u.logs {
			if f.asked.Match(&u.logs[i]) {
				add(u.logs[i].JSON)
			}
		}
	}
}

// getFilterLogs answers eth_getFilterLogs.
func (a *API) getFilterLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	f, _, err := a.publisher.polledArgument(ctx, params)
	if err != nil {
		return out, err
	}
	if f.asked == nil {
		return out, errFilterNotFound
	}
	return a.appendLogs(ctx, *f.asked, out)
}

// uninstallFilter answers eth_uninstallFilter.
func (p *publisher) uninstallFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	id := argument(&args, 0, parseText)
	if args.err != nil {
		return out, args.err
	}
	if !p.polled.Remove(jsonrpc.CallerFrom(ctx), id) {
		return append(out, "false"...), nil
	}
	return append(out, "true"...), nil
}
