// Package api answers the rollup_ and starknet_ methods about one Starknet
// network.
//
// Answers are those of version 0.9.0 of the Starknet specification, about what
// the network holds: blocks, receipts and events. Clients of the versions beside it
// find what they look for too: the tag and the parent of the pending block as up to
// 0.8, and the indexes of events as since 0.10. Every method takes one view of the
// network and asks it alone.
package api

import (
	"context"
	"errors"

	"ashlar/events"
	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
)

// specVersion is the version of the Starknet specification that answers follow. It
// is the one that today's clients agree on: starknet.js refuses all before it, Torii
// all but it.
const specVersion = "0.9.0"

// codeUnknownTransaction is the specification's code where no transaction has a hash.
const codeUnknownTransaction = 29

// API answers questions about one network. It may be used from many goroutines at once.
type API struct{ chain *query.Chain }

// New makes the API of a chain.
func New(chain *query.Chain) *API { return &API{chain} }

// Methods are all methods of the API by name.
func (a *API) Methods() jsonrpc.Handlers {
	methods := jsonrpc.Handlers{
		"rollup_getEvents":               a.events(false).Method(),
		"starknet_getEvents":             a.events(true).Method(),
		"starknet_specVersion":           constant(jsonrpc.AppendString(nil, specVersion)),
		"starknet_chainId":               constant(appendFelt(nil, starknet.FeltOfText(a.chain.ID()))),
		"starknet_blockNumber":           a.blockNumber,
		"starknet_blockHashAndNumber":    a.blockHashAndNumber,
		"starknet_getBlockWithTxHashes":  a.getBlockWithTxHashes,
		"starknet_getTransactionReceipt": a.getTransactionReceipt,
	}
	for name, method := range methods {
		methods[name] = method.Translated(translate)
	}
	return methods
}

// translate puts errors into the words that clients know.
func translate(err error) error {
	before := (*archive.BeforeFirst)(nil)
	switch {
	case errors.As(err, &before):
		return events.UnknownBlock(before.Error())
	case errors.Is(err, query.ErrUnknownBlock):
		return events.UnknownBlock("")
	case errors.Is(err, query.ErrUnknownTransaction):
		return &jsonrpc.Error{Code: codeUnknownTransaction, Message: "Transaction hash not found"}
	}
	return err
}

// view returns the network as it is now, or the error that says that it is empty.
func (a *API) view() (*query.View, error) {
	view := a.chain.View()
	if view == nil {
		return nil, events.NoBlocks()
	}
	return view, nil
}

// constant is a method without parameters whose answer never changes.
func constant(answer []byte) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		if err := noArguments(params); err != nil {
			return out, err
		}
		return append(out, answer...), nil
	}
}
