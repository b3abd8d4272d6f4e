package feed

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/parameter"
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
