package api

import (
	"context"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// rawMethods describes the methods that return objects in the protocol's encoding.
func (a *API) rawMethods(d *eth.Description) []jsonrpc.Method {
	of := []jsonrpc.Param{d.Block}
	return []jsonrpc.Method{
		{
			Name: "debug_getRawHeader", Summary: "Returns the encoding of a header.",
			Params: of, Result: eth.Result("Header RLP", eth.Data), Errors: blockErrors,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.encoded(func(b *block) ([]byte, error) { return b.RLP, nil }),
		},
		{
			Name: "debug_getRawBlock", Summary: "Returns the encoding of a block.",
			Params: of, Result: eth.Result("Block RLP", eth.Data), Errors: blockErrors,
			Cost: jsonrpc.Light(20), Concerns: jsonrpc.NoContract, Handler: a.encoded((*block).rlp),
		},
		{
			Name: "debug_getRawReceipts", Summary: "Returns the encodings of a block's receipts.",
			Params: of, Result: eth.Result("Receipts", schema.OrNull(schema.Array(eth.Data))), Errors: blockErrors,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.getRawReceipts,
		},
		{
			Name: "debug_getRawTransaction", Summary: "Returns the encoding of the transaction with a hash.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: eth.Result("EIP-2718 binary-encoded transaction", eth.Data),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.getRawTransaction(),
		},
	}
}

// encoded returns the handler that answers with an encoding of a block.
func (a *API) encoded(encode func(*block) ([]byte, error)) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		b, err := a.rawBlock(ctx, params, a.block)
		if err != nil {
			return out, err
		}
		if b == nil {
			return append(out, noBytes...), nil
		}
		defer b.release()
		encoded, err := encode(b)
		if err != nil {
			return out, err
		}
		return appendHex(out, encoded), nil
	}
}

// getRawReceipts answers debug_getRawReceipts.
func (a *API) getRawReceipts(ctx context.Context, params, out []byte) ([]byte, error) {
	b, err := a.rawBlock(ctx, params, a.blockWithReceipts)
	if err != nil {
		return out, err
	}
	if b == nil {
		return appendNull(out), nil
	}
	defer b.release()
	return jsonrpc.RoomFor(ctx, out).AppendArray(out, b.receipts.Len(), func(out []byte, i int) ([]byte, error) {
		encoded, err := b.receiptRLP(i)
		return appendHex(out, encoded), err
	})
}

// rawBlock reads the requested block. As in geth, it returns nil for a number above the
// head, and an error for an unknown hash.
func (a *API) rawBlock(ctx context.Context, params []byte, read blockReader) (*block, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Block(0)
	if args.Err != nil {
		return nil, args.Err
	}
	view, number, err := a.at(ctx, id)
	if id.Hash == nil && unknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(ctx, view, number)
}

// receiptRLP returns the encoding of receipt i that the receipts root commits to.
func (b *block) receiptRLP(i int) ([]byte, error) {
	tx, err := b.transaction(i)
	if err != nil {
		return nil, err
	}
	stored, err := b.receipts.Receipt(i)
	if err != nil {
		return nil, err
	}
	receipt := types.Receipt{Type: tx.Type, PostState: stored.StateRoot, CumulativeGasUsed: stored.CumulativeGasUsed}
	if stored.Succeeded {
		receipt.Status = types.ReceiptStatusSuccessful
	}
	logs := stored.Logs()
	for {
		log, ok, err := logs.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return receipt.MarshalBinary()
		}
		b.blooms.add(&receipt.Bloom, &log)
		whole := &types.Log{Address: log.Address, Data: log.Data}
		for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
			whole.Topics = append(whole.Topics, common.Hash(topics[:common.HashLength]))
		}
		receipt.Logs = append(receipt.Logs, whole)
	}
}
