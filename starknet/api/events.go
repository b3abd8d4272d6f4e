package api

import (
	"context"
	"errors"
	"strconv"

	"ashlar/events"
	"ashlar/history/paging"
	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
)

// events returns the network whose events can be queried, in the form of a version.
func (a *API) events(v Version) events.Network {
	return events.Network{ParseAddress: parseWord, ParseWord: parseWord, Address: feltSchema, Word: feltSchema, AddressLists: v.addressLists, L1Tag: v.l1Tag, View: func() (events.View, error) {
		if view := a.chain.View(); view != nil {
			return &eventView{a, view, v.indexed}, nil
		}
		return nil, nil
	}}
}

// eventView is a view whose events can be queried. It implements [events.View].
type eventView struct {
	api     *API
	view    *query.View
	indexed bool
}

func (v *eventView) Span() (first, last uint64) {
	span := v.view.Span()
	return span.First, span.Last.Number
}

// L1Accepted implements [events.L1View].
func (v *eventView) L1Accepted() (number uint64, known bool) { return v.view.L1Accepted() }

// WithPending implements [events.View]. The network has no pending block.
func (v *eventView) WithPending(context.Context) (events.View, bool, error) { return v, false, nil }

func (v *eventView) BlockHash(ctx context.Context, number uint64) (events.Word, error) {
	header, err := v.view.Header(ctx, number)
	if err != nil {
		return events.Word{}, err
	}
	return events.Word(header.Hash), nil
}

func (v *eventView) FindBlock(ctx context.Context, hash events.Word) (number uint64, known bool, err error) {
	number, err = v.view.FindBlock(ctx, starknet.Felt(hash))
	if errors.Is(err, query.ErrUnknownBlock) {
		return 0, false, nil
	}
	return number, err == nil, err
}

func (v *eventView) AppendEvents(ctx context.Context, filter *events.Filter, r paging.Range, out []byte) ([]byte, *paging.Place, error) {
	wanted := query.Filter{Keys: make([][]starknet.Felt, len(filter.Keys))}
	for _, address := range filter.Addresses {
		wanted.From = append(wanted.From, starknet.Felt(address))
	}
	for i, allowed := range filter.Keys {
		for _, key := range allowed {
			wanted.Keys[i] = append(wanted.Keys[i], starknet.Felt(key))
		}
	}
	room, begin := jsonrpc.RoomFor(ctx, out), len(out)
	verified := v.checkPage(ctx)
	next, err := v.view.EventPage(ctx, &wanted, r, func(event *query.Event) (err error) {
		if err := verified.visit(ctx, event.BlockNumber); err != nil {
			return err
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		if out, err = appendRecord(out, event, v.indexed); err != nil {
			return err
		}
		return room.Check(len(out))
	})
	for _, number := range []uint64{r.Begin.Block, r.To} {
		if err == nil {
			err = verified.visit(ctx, number)
		}
	}
	return out, next, err
}

// appendRecord appends an event with its place, and with its indexes if indexed.
func appendRecord(out []byte, event *query.Event, indexed bool) (_ []byte, err error) {
	out = append(out, `{"block_hash":`...)
	out = appendFelt(out, event.BlockHash)
	out = append(out, `,"block_number":`...)
	out = strconv.AppendUint(out, event.BlockNumber, 10)
	out = append(out, ',')
	if out, err = appendContent(out, &event.Event); err != nil {
		return out, err
	}
	out = append(out, `,"transaction_hash":`...)
	out = appendFelt(out, event.TransactionHash)
	if indexed {
		out = append(out, `,"transaction_index":`...)
		out = strconv.AppendUint(out, event.Transaction, 10)
		out = append(out, `,"event_index":`...)
		out = strconv.AppendUint(out, event.Index, 10)
	}
	return append(out, '}'), nil
}

// appendContent appends the emitter, the keys and the data of an event.
func appendContent(out []byte, event *archive.Event) (_ []byte, err error) {
	out = append(out, `"data":`...)
	if out, err = appendList(out, event.Data); err != nil {
		return out, err
	}
	out = append(out, `,"from_address":`...)
	out = appendFelt(out, event.From)
	out = append(out, `,"keys":`...)
	return appendList(out, event.Keys)
}

// appendList appends stored felts as an array.
func appendList(out []byte, list archive.Felts) ([]byte, error) {
	out = append(out, '[')
	var felt starknet.Felt
	for first := true; ; first = false {
		ok, err := list.Next(&felt)
		if err != nil {
			return out, err
		}
		if !ok {
			return append(out, ']'), nil
		}
		if !first {
			out = append(out, ',')
		}
		out = appendFelt(out, felt)
	}
}

// appendFelt appends a felt as a JSON string.
func appendFelt(out []byte, felt starknet.Felt) []byte {
	return append(felt.AppendText(append(out, '"')), '"')
}
