package api

import (
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// blockMethods describes the methods about blocks and their counts. Their answers are not
// restricted by contract.
func (a *API) blockMethods(d *eth.Description) []jsonrpc.Method {
	byHash, byNumber := (*parameter.Arguments).BlockHash, (*parameter.Arguments).BlockNumber
	block, header := schema.OrNull(blockResultSchema), eth.Result("Header", schema.OrNull(headerSchema))
	return []jsonrpc.Method{
		d.Method("eth_getBlockByHash", eth.Own{Handler: a.getBlock(byHash), Result: block}),
		d.Method("eth_getBlockByNumber", eth.Own{Handler: a.getBlock(byNumber), Result: block, Errors: namedBlockErrors}),
		{
			Name: "eth_getHeaderByHash", Summary: "Returns the header of the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash}, Result: header,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.ofBlock(byHash, appendHeaderOf),
		},
		{
			Name: "eth_getHeaderByNumber", Summary: "Returns the header of the block with a number or a tag.",
			Params: []jsonrpc.Param{d.BlockNumber}, Result: header,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.getHeaderByNumber(),
		},
		d.Method("eth_getBlockReceipts", eth.Own{
			Handler: a.getBlockReceipts, Cost: jsonrpc.Heavy(50), Result: schema.OrNull(schema.Array(receiptSchema)), Errors: namedBlockErrors,
		}),
		d.Method("eth_getBlockTransactionCountByHash", eth.Own{Handler: a.ofBlock(byHash, appendTransactionCount)}),
		d.Method("eth_getBlockTransactionCountByNumber", eth.Own{Handler: a.ofBlock(byNumber, appendTransactionCount), Errors: namedBlockErrors}),
		d.Method("eth_getUncleCountByBlockHash", eth.Own{Handler: a.ofBlock(byHash, appendUncleCount)}),
		d.Method("eth_getUncleCountByBlockNumber", eth.Own{Handler: a.ofBlock(byNumber, appendUncleCount), Errors: namedBlockErrors}),
		d.Method("eth_getUncleByBlockHashAndIndex", eth.Own{Handler: a.inBlock(byHash, appendUncleAt, "null"), Result: block}),
		d.Method("eth_getUncleByBlockNumberAndIndex", eth.Own{
			Handler: a.inBlock(byNumber, appendUncleAt, "null"), Result: block, Errors: namedBlockErrors,
		}),
	}
}

// blockArgument decodes the block parameter at a position; methods accept different kinds.
type blockArgument func(args *parameter.Arguments, n int) chain.BlockID

// find reads the header and the body of the block that id names, or nil if it does not
// exist.
func (a *API) find(ctx context.Context, id chain.BlockID) (*block, error) {
	return a.findBlock(ctx, id, a.block)
}

// findBlock is find with a function that reads the block.
func (a *API) findBlock(ctx context.Context, id chain.BlockID, read blockReader) (*block, error) {
	view, number, err := a.at(ctx, id)
	if unknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(ctx, view, number)
}

// findWithReceipts reads the block that id names with its receipts, or nil if it does not
// exist or is pending: the pending block has no receipts yet.
func (a *API) findWithReceipts(ctx context.Context, id chain.BlockID) (*block, error) {
	view, number, err := a.at(ctx, id)
	if unknown(err) || err == nil && view.IsPending(number) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.blockWithReceipts(ctx, view, number)
}

// getBlock answers eth_getBlockByHash and eth_getBlockByNumber.
func (a *API) getBlock(argument blockArgument) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 2, 2)
		id, whole := argument(&args, 0), args.Bool(1)
		if args.Err != nil {
			return out, args.Err
		}
		read := a.outlined
		if whole {
			read = a.block
		}
		b, err := a.findBlock(ctx, id, read)
		if err != nil {
			return out, err
		}
		if b == nil {
			return appendNull(out), nil
		}
		defer b.release()
		return b.appendBlock(out, whole, jsonrpc.RoomFor(ctx, out))
	}
}

// getBlockReceipts answers eth_getBlockReceipts.
func (a *API) getBlockReceipts(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Block(0)
	if args.Err != nil {
		return out, args.Err
	}
	b, err := a.findWithReceipts(ctx, id)
	if err != nil {
		return out, err
	}
	if b == nil {
		return appendNull(out), nil
	}
	defer b.release()
	hashes, err := a.hashes.of(b.Hash, &b.body)
	if err != nil {
		return out, err
	}
	return jsonrpc.RoomFor(ctx, out).AppendArray(out, b.body.Len(), func(out []byte, i int) ([]byte, error) {
		return b.appendReceipt(out, i, hashes.hash(i))
	})
}

// ofBlock answers with a part of a block, or null if the block does not exist.
func (a *API) ofBlock(argument blockArgument, appendAnswer func(out []byte, b *block) ([]byte, error)) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		id := argument(&args, 0)
		if args.Err != nil {
			return out, args.Err
		}
		b, err := a.find(ctx, id)
		if err != nil {
			return out, err
		}
		if b == nil {
			return appendNull(out), nil
		}
		defer b.release()
		return appendAnswer(out, b)
	}
}

// getHeaderByNumber answers eth_getHeaderByNumber: null where no block is safe or final
// yet, as in geth.
func (a *API) getHeaderByNumber() jsonrpc.Handler {
	get := a.ofBlock((*parameter.Arguments).BlockNumber, appendHeaderOf)
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		header, err := get(ctx, params, out)
		if errors.Is(err, query.ErrNoSafe) || errors.Is(err, query.ErrNoFinalized) {
			return appendNull(out), nil
		}
		return header, err
	}
}

// appendHeaderOf appends the block's header, or null for a pending block, as in geth.
func appendHeaderOf(out []byte, b *block) ([]byte, error) {
	if b.pending {
		return appendNull(out), nil
	}
	return append(appendHeader(append(out, '{'), b.Header.Header, b.Hash), '}'), nil
}

func appendTransactionCount(out []byte, b *block) ([]byte, error) {
	return appendQuantity(out, uint64(b.body.Len())), nil
}

func appendUncleCount(out []byte, b *block) ([]byte, error) {
	uncles, err := b.body.Uncles()
	return appendQuantity(out, uint64(len(uncles))), err
}

// inBlock answers with an element of a block. appendItem appends the one at an index, or
// returns false if it does not exist; then, and if the block does not exist, the answer is
// missing.
func (a *API) inBlock(argument blockArgument, appendItem func(out []byte, b *block, index uint64) ([]byte, bool, error), missing string) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 2, 2)
		id, index := argument(&args, 0), args.Uint64(1)
		if args.Err != nil {
			return out, args.Err
		}
		b, err := a.find(ctx, id)
		if err != nil {
			return out, err
		}
		if b == nil {
			return append(out, missing...), nil
		}
		defer b.release()
		result, found, err := appendItem(out, b, index)
		if err == nil && !found {
			return append(out, missing...), nil
		}
		return result, err
	}
}

func appendUncleAt(out []byte, b *block, index uint64) ([]byte, bool, error) {
	uncles, err := b.body.Uncles()
	if err != nil || index >= uint64(len(uncles)) {
		return out, false, err
	}
	return appendUncle(out, uncles[index]), true, nil
}
