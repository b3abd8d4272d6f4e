// Package api answers the rollup_ and starknet_ methods about one Starknet
// network.
//
// Answers follow a [Version] of the Starknet specification, for the data that the network
// stores: blocks, receipts and events. Every method reads one view of the network.
package api

import (
	"context"
	"errors"

	"ashlar/events"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
)

// codeUnknownTransaction is the specification's code for an unknown transaction hash.
const codeUnknownTransaction = 29

// API answers questions about one network. It may be used from many goroutines at once.
type API struct {
	chain   *query.Chain
	version Version
	samples jsonrpc.Samples[sample]
}

// New makes the API of a chain in a version.
func New(chain *query.Chain, version Version) *API { return &API{chain: chain, version: version} }

// Methods describes all methods of the API. Keys can be restricted to contracts of EVM
// networks only, so for such keys every method that returns contracts' events concerns
// any contract.
func (a *API) Methods() (*jsonrpc.Methods, error) {
	rollupEvents := a.events(Version{}).Describe("rollup_getEvents", a.example((*sample).filter))
	starknetEvents := a.events(a.version).Describe("starknet_getEvents", a.example((*sample).filter))
	rollupEvents.Concerns, starknetEvents.Concerns = jsonrpc.AnyContract, jsonrpc.AnyContract
	all := []jsonrpc.Method{
		rollupEvents, starknetEvents,
		{
			Name: "starknet_specVersion", Summary: "Returns the version of the Starknet specification that answers follow.", ByName: true,
			Result: result(schema.String),
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: constant(jsonrpc.AppendString(nil, a.version.spec)),
		},
		{
			Name: "starknet_chainId", Summary: "Returns the chain's identifier.", ByName: true,
			Result: result(feltSchema),
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: constant(appendFelt(nil, starknet.FeltOfText(a.chain.ID()))),
		},
		{
			Name: "starknet_blockNumber", Summary: "Returns the number of the latest block.", ByName: true,
			Result: result(schema.Unsigned), Errors: emptyErrors,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.blockNumber,
		},
		{
			Name: "starknet_blockHashAndNumber", Summary: "Returns the hash and the number of the latest block.", ByName: true,
			Result: result(schema.Object(schema.Members{"block_hash": feltSchema, "block_number": schema.Unsigned}, nil)), Errors: emptyErrors,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.blockHashAndNumber,
		},
		{
			Name: "starknet_getBlockWithTxHashes", Summary: "Returns a block with the hashes of its transactions.", ByName: true,
			Params: []jsonrpc.Param{{
				Name: "block_id", Summary: "The block.", Schema: blockSchema, Required: true, Example: a.example((*sample).blockID),
			}},
			Result: result(blockResultSchema), Errors: blockErrors,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.getBlockWithTxHashes,
		},
		{
			Name: "starknet_getTransactionReceipt", Summary: "Returns the receipt of the transaction with a hash.", ByName: true,
			Params: []jsonrpc.Param{{
				Name: "transaction_hash", Summary: "The hash of the transaction.", Schema: feltSchema, Required: true,
				Example: a.example(func(s *sample) any { return s.transaction.String() }),
			}},
			Result: result(receiptSchema), Errors: errorsOf(errTransactionNotFound, events.NoBlocks()),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.AnyContract, Handler: a.getTransactionReceipt,
		},
	}
	for i := range all {
		all[i].Handler = all[i].Handler.Translated(translate)
		all[i].Verified = jsonrpc.Executed
	}
	return jsonrpc.NewMethods(all...)
}

func result(s *schema.Schema) jsonrpc.Result {
	return jsonrpc.Result{Name: "result", Schema: s}
}

// translate returns the error of the specification for an internal one.
func translate(err error) error {
	before := (*archive.BeforeFirst)(nil)
	switch {
	case errors.As(err, &before):
		return events.UnknownBlock(before.Error())
	case errors.Is(err, query.ErrUnknownBlock):
		return events.UnknownBlock("")
	case errors.Is(err, query.ErrUnknownTransaction):
		return errTransactionNotFound
	}
	return err
}

// view returns the current view, or the error for a network without blocks.
func (a *API) view() (*query.View, error) {
	view := a.chain.View()
	if view == nil {
		return nil, events.NoBlocks()
	}
	return view, nil
}

// constant returns the handler of a method without parameters whose answer never changes.
func constant(answer []byte) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		if err := noArguments(params); err != nil {
			return out, err
		}
		return append(out, answer...), nil
	}
}
