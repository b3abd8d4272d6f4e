package eth

import (
	"bytes"
	"context"

	"ashlar/archive"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// noBytes is the answer for bytes that were not found. geth answers so, where
// one would expect null.
const noBytes = `"0x"`

// transactionMethods answer about transactions and their receipts.
func (a *API) transactionMethods() jsonrpc.Methods {
	byHash, byNumber := (*arguments).blockHash, (*arguments).blockNumber
	return jsonrpc.Methods{
		"eth_getTransactionByHash":                   a.getTransactionByHash,
		"eth_getTransactionByBlockHashAndIndex":      a.inBlock(byHash, appendTransactionAt, "null"),
		"eth_getTransactionByBlockNumberAndIndex":    a.inBlock(byNumber, appendTransactionAt, "null"),
		"eth_getRawTransactionByHash":                a.getRawTransaction,
		"eth_getRawTransactionByBlockHashAndIndex":   a.inBlock(byHash, appendRawTransactionAt, noBytes),
		"eth_getRawTransactionByBlockNumberAndIndex": a.inBlock(byNumber, appendRawTransactionAt, noBytes),
		"eth_getTransactionReceipt":                  a.getTransactionReceipt,
	}
}

// findTransaction reads the block that holds the transaction with a hash; nil
// when there is none. read reads a block with whatever is wanted of it.
func (a *API) findTransaction(ctx context.Context, hash common.Hash, read blockReader) (b *block, index int, err error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, 0, err
	}
	err = view.FindTransaction(ctx, hash, func(place archive.Place) (bool, error) {
		candidate, err := read(ctx, view, place.Number)
		if err != nil {
			return false, err
		}
		if found, err := candidate.holds(place.Index, hash); !found || err != nil {
			candidate.release()
			return false, err
		}
		b, index = candidate, place.Index
		return true, nil
	})
	return b, index, err
}

// holds says whether transaction i of the block has that hash.
func (b *block) holds(i int, hash common.Hash) (bool, error) {
	if i >= b.body.Len() {
		return false, nil
	}
	raw, err := b.body.Transaction(i)
	if err != nil {
		return false, err
	}
	return bytes.Equal(b.hasher.hash(raw), hash[:]), nil
}

// getTransactionByHash answers eth_getTransactionByHash.
func (a *API) getTransactionByHash(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	hash := args.hash(0)
	if args.err != nil {
		return out, args.err
	}
	b, index, err := a.findTransaction(ctx, hash, a.block)
	if err != nil {
		return out, err
	}
	if b == nil {
		out, waits, err := a.appendPooledByHash(out, hash)
		if waits || err != nil {
			return out, err
		}
		return appendNull(out), nil
	}
	defer b.release()
	return b.appendTransaction(out, index, hash[:])
}

// getTransactionReceipt answers eth_getTransactionReceipt.
func (a *API) getTransactionReceipt(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	hash := args.hash(0)
	if args.err != nil {
		return out, args.err
	}
	b, index, err := a.findTransaction(ctx, hash, a.blockWithReceipts)
	if err != nil {
		return out, err
	}
	if b == nil {
		return appendNull(out), nil
	}
	defer b.release()
	return b.appendReceipt(out, index, hash[:])
}

// getRawTransaction answers eth_getRawTransactionByHash and debug_getRawTransaction.
func (a *API) getRawTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	hash := args.hash(0)
	if args.err != nil {
		return out, args.err
	}
	b, index, err := a.findTransaction(ctx, hash, a.block)
	if err != nil {
		return out, err
	}
	if b == nil {
		return append(out, noBytes...), nil
	}
	defer b.release()
	result, _, err := appendRawTransactionAt(out, b, uint64(index))
	return result, err
}

func appendTransactionAt(out []byte, b *block, index uint64) ([]byte, bool, error) {
	if index >= uint64(b.body.Len()) {
		return out, false, nil
	}
	raw, err := b.body.Transaction(int(index))
	if err != nil {
		return out, false, err
	}
	out, err = b.appendTransaction(out, int(index), b.hasher.hash(raw))
	return out, true, err
}

func appendRawTransactionAt(out []byte, b *block, index uint64) ([]byte, bool, error) {
	if index >= uint64(b.body.Len()) {
		return out, false, nil
	}
	raw, err := b.body.Transaction(int(index))
	return appendHex(out, raw), true, err
}
