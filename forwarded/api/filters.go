package api

import (
	"context"
	"fmt"
	"sync"

	"ashlar/eth"
	"ashlar/feed"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// filterBytes is the memory of a filter or subscription without its addresses and topics.
const filterBytes = 512

// polledFilter is a filter that is read by polling.
type polledFilter struct {
	watched *watchedLogs // nil: hashes of blocks

	reading  sync.Mutex // held while the filter is read, so that nothing is returned twice
	start               // changed with the publisher's mu and reading held
	joined   joinedAt   // guarded by reading: the updates to the head of its first round
	position uint64     // guarded by reading: in the journal of blocks, after the last entry returned
}

// joinedAt is the place of a filter's first updates in the journal of joining filters.
type joinedAt struct {
	position uint64 // of the round
	set      int    // of those in the round, one for each view
	left     int    // how many of the set were not returned yet
}

// join lets a filter return the updates from its view to the head of a round, and then the entries of
// the journal of blocks from a position on.
func (f *polledFilter) join(r *round, joined joinedAt, position uint64) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.joined, f.position = joined, position
	f.start = start{round: r.number}
}

// unread returns the updates from a filter's view to the head of its first round, and those published
// since, that the filter did not return yet. It returns false if some of them are no longer kept.
func (p *publisher) unread(f *polledFilter) (joined, published []*update, ok bool) {
	if published, _, ok = p.blocks.Since(f.position); !ok || f.joined.left == 0 {
		return nil, published, ok
	}
	rounds, _, ok := p.joins.Since(f.joined.position)
	if !ok {
		return nil, nil, false
	}
	set := rounds[0][f.joined.set]
	return set[len(set)-f.joined.left:], published, true
}

// feedMethods describes the methods by which clients subscribe, and install and poll filters.
func (a *API) feedMethods(d *eth.Description) []jsonrpc.Method {
	polled, emitters := a.publisher.polled, a.publisher.polled.Concerning((*polledFilter).emitters)
	logs := schema.Array(nodesResult)
	return []jsonrpc.Method{
		d.Method("eth_subscribe", eth.Own{
			Handler: a.publisher.subscribeMethod, Concerns: subscribedContracts,
			Params: []jsonrpc.Param{eth.SubscriptionKinds("newHeads", "logs"), {Name: "Options", Summary: "For logs a filter.", Schema: eth.Filter}},
		}),
		d.Method("eth_unsubscribe", eth.Own{}),
		d.Method("eth_newFilter", eth.Own{Handler: a.publisher.newLogFilter}),
		d.Method("eth_newBlockFilter", eth.Own{Handler: a.publisher.newBlockFilter}),
		d.Method("eth_getFilterChanges", eth.Own{Handler: polled.Changes(a.publisher.appendUpdates), Concerns: emitters, Result: logs}),
		d.Method("eth_getFilterLogs", eth.Own{
			Handler: a.getFilterLogs, Cost: a.recomputing(50), Concerns: emitters, Result: logs, Errors: append([]*jsonrpc.Error{feed.ErrFilterNotFound}, logErrors...),
		}),
		d.Method("eth_uninstallFilter", eth.Own{Handler: polled.Uninstall}),
	}
}

// watchedLogs is the selection of new logs for a subscription or a polled filter.
type watchedLogs struct {
	query.Filter
	asked parameter.LogFilter
}

// parseWatched decodes the filter of a subscription or a polled filter. A blockHash counts in
// eth_getFilterLogs only.
func parseWatched(raw []byte) (*watchedLogs, error) {
	asked, err := parameter.ParseLogFilter(raw)
	if err != nil {
		return nil, err
	}
	if err := asked.CheckSize(); err != nil {
		return nil, err
	}
	watched := &watchedLogs{query.Filter{Addresses: asked.Addresses, Topics: asked.Topics}, asked}
	watched.From, watched.To, err = asked.NewBlocks()
	return watched, err
}

// within reports whether logs of a new block are selected.
func (w *watchedLogs) within(number uint64) bool { return w.From <= number && number <= w.To }

// subscribedContracts is the Concerns of eth_subscribe.
func subscribedContracts(_ context.Context, params []byte) (jsonrpc.Concern, error) {
	args := parameter.Read(params, 2, 1)
	kind := args.Text(0)
	switch {
	case args.Err != nil:
		return jsonrpc.Concern{}, parameter.Unreadable(args.Err)
	case kind == "newHeads":
		return jsonrpc.None(), nil
	case kind != "logs":
		return jsonrpc.Concern{}, fmt.Errorf("the contracts of %q subscriptions are unknown", kind)
	}
	filter := parameter.Decode(&args, 1, parameter.ParseLogFilter)
	if args.Err != nil {
		return jsonrpc.Concern{}, parameter.Unreadable(args.Err)
	}
	return parameter.About(filter.Addresses), nil
}

// subscribeMethod answers eth_subscribe.
func (p *publisher) subscribeMethod(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := feed.Supported(ctx); err != nil {
		return out, err
	}
	kind, err := feed.Kind(params)
	if err != nil {
		return out, err
	}
	args := parameter.Read(params, 2, 1)
	var watched *watchedLogs
	switch kind {
	case "newHeads":
	case "logs":
		if args = parameter.Read(params, 2, 2); args.Err == nil {
			watched = parameter.Decode(&args, 1, parseWatched)
		}
	default:
		return out, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no %q subscription in eth namespace", kind)
	}
	if args.Err != nil {
		return out, args.Err
	}
	id, err := p.subscribe(ctx, watched)
	if err != nil {
		return out, err
	}
	return jsonrpc.AppendString(out, id), nil
}

// newLogFilter answers eth_newFilter.
func (p *publisher) newLogFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	watched := parameter.Decode(&args, 0, parseWatched)
	if args.Err != nil {
		return out, args.Err
	}
	return p.install(ctx, watched, out)
}

// newBlockFilter answers eth_newBlockFilter.
func (p *publisher) newBlockFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	return p.install(ctx, nil, out)
}

// install adds a filter that starts now, and appends its ID. Before the first head it waits.
func (p *publisher) install(ctx context.Context, watched *watchedLogs, out []byte) ([]byte, error) {
	if _, err := p.chain.View(ctx); err != nil {
		return out, err
	}
	bytes := filterBytes
	if watched != nil {
		bytes += watched.asked.Bytes()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &polledFilter{watched: watched, start: p.begin(), position: p.blocks.End()}
	id, err := p.polled.Add(jsonrpc.CallerFrom(ctx), f, bytes)
	if err != nil {
		return out, err
	}
	p.filters++
	p.watch(watched)
	return jsonrpc.AppendString(out, id), nil
}

// emitters returns the contracts that a filter for logs was installed for.
func (f *polledFilter) emitters() ([]common.Address, bool) {
	if f.watched == nil {
		return nil, false
	}
	return f.watched.Addresses, true
}

// appendUpdates appends the blocks or logs published since a filter was last read. A block is never split:
// one that does not fit is left for the next call. Calls for one filter wait for each other.
func (p *publisher) appendUpdates(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	joined, published, ok := p.unread(f)
	if !ok {
		return out, feed.ErrFilterNotFound
	}
	list := jsonrpc.NewList(append(out, '['), room)
	for _, u := range joined {
		if list.Len() >= eth.MaxLogs {
			break
		}
		before := list
		if err := f.append(u, &list); err != nil {
			return before.End(err)
		}
		f.joined.left--
	}
	for _, u := range published {
		if list.Len() >= eth.MaxLogs {
			break
		}
		before := list
		if f.wants(u) {
			if err := f.append(u, &list); err != nil {
				return before.End(err)
			}
		}
		f.position++
	}
	return list.End(nil)
}

// append appends the entries that the filter selects from an update. It returns an error if they do not fit.
func (f *polledFilter) append(u *update, list *jsonrpc.List) error {
	switch {
	case f.watched == nil && !u.dropped:
		return list.Add(jsonrpc.AppendString(list.Next(), u.block.Hash.Hex()))
	case f.watched != nil && f.watched.within(u.block.Number):
		for i := range u.logs {
			if !f.watched.Match(&u.logs[i]) {
				continue
			}
			if err := list.Add(append(list.Next(), u.logs[i].JSON...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// getFilterLogs answers eth_getFilterLogs.
func (a *API) getFilterLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	f, _, err := a.publisher.polled.Named(ctx, params)
	if err != nil {
		return out, err
	}
	if f.watched == nil {
		return out, feed.ErrFilterNotFound
	}
	return a.appendLogs(ctx, f.watched.asked, out)
}
