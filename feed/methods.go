package feed

import (
	"context"
	"errors"

	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrFilterNotFound also stands for expired filters and those of other callers.
	ErrFilterNotFound       = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "filter not found"}
	ErrSubscriptionNotFound = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "subscription not found"}
)

// Kind returns the first argument of eth_subscribe, the kind of the subscription.
func Kind(params []byte) (string, error) {
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

// Unsubscribe answers eth_unsubscribe.
func Unsubscribe(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Text(0)
	if args.Err != nil {
		return out, args.Err
	}
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok || !notifier.Stop(id) {
		return out, ErrSubscriptionNotFound
	}
	return append(out, "true"...), nil
}

// Named finds the filter that a call names as its only argument. It returns the query of the
// filter, and keeps the filter from expiring.
func (f *Filters[F]) Named(ctx context.Context, params []byte) (query F, id string, err error) {
	args := parameter.Read(params, 1, 1)
	id = args.Text(0)
	if args.Err != nil {
		return query, "", args.Err
	}
	query, ok := f.Use(jsonrpc.CallerFrom(ctx), id)
	if !ok {
		return query, "", ErrFilterNotFound
	}
	return query, id, nil
}

// Concerning returns the Concerns of methods that read a filter. emitters returns the contracts that a filter was
// installed for, and false if it is about no contract; the key may have been restricted since.
func (f *Filters[F]) Concerning(emitters func(query F) (contracts []common.Address, restricted bool)) jsonrpc.Concerns {
	return func(ctx context.Context, params []byte) (jsonrpc.Concern, error) {
		query, _, err := f.Named(ctx, params)
		switch {
		case errors.Is(err, ErrFilterNotFound):
			return jsonrpc.None(), nil // the call fails
		case err != nil:
			return jsonrpc.Concern{}, parameter.Unreadable(err)
		}
		contracts, restricted := emitters(query)
		if !restricted {
			return jsonrpc.None(), nil
		}
		return parameter.About(contracts), nil
	}
}

// Changes returns the handler of eth_getFilterChanges. read appends what has come since a filter was last read, as
// far as there is room, and returns [ErrFilterNotFound] if some of it is no longer kept. It may run at once for the same
// filter, and must keep what it returns from being returned twice. A filter that has fallen
// behind so, or whose next entry never fits, is removed.
func (f *Filters[F]) Changes(read func(query F, room jsonrpc.Room, out []byte) ([]byte, error)) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		query, id, err := f.Named(ctx, params)
		if err != nil {
			return out, err
		}
		room := jsonrpc.RoomLeft(ctx, out)
		if out, err = read(query, room, out); errors.Is(err, ErrFilterNotFound) || room.Never(err) {
			f.Remove(jsonrpc.CallerFrom(ctx), id)
		}
		return out, err
	}
}

// Uninstall answers eth_uninstallFilter.
func (f *Filters[F]) Uninstall(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Text(0)
	if args.Err != nil {
		return out, args.Err
	}
	if !f.Remove(jsonrpc.CallerFrom(ctx), id) {
		return append(out, "false"...), nil
	}
	return append(out, "true"...), nil
}
