package api

import (
	"context"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// rawMethods answer with what is stored in the encoding of the protocol.
func (a *API) rawMethods() jsonrpc.Handlers {
	return jsonrpc.Handlers{
		"debug_getRawHeader":      a.encoded(func(b *block) ([]byte, error) { return b.RLP, nil }),
		"debug_getRawBlock":       a.encoded((*block).rlp),
		"debug_getRawReceipts":    a.getRawReceipts,
		"debug_getRawTransaction": a.getRawTransaction(),
	}
}

// encoded answers with an encoding of a block.
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

// rawBlock reads the block that is asked for: nil for a number above the head,
// an error for an unknown hash, as in geth.
func (a *API) rawBlock(ctx context.Context, params []byte, read blockReader) (*block, error) {
	args := readArguments(params, 1, 1)
	id := args.block(0)
	if args.err != nil {
		return nil, args.err
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

// receiptRLP is the encoding of receipt i, as it is hashed into the receipts root.
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
