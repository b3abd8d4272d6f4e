package api

import (
	"bytes"
	"context"

	"ashlar/eth"
	"ashlar/evm/archive"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// noBytes is the answer for the encoding of a missing transaction: as in geth, not null.
const noBytes = `"0x"`

// transactionMethods describes the methods about transactions and their receipts, which are
// not restricted by contract.
func (a *API) transactionMethods(d *eth.Description) []jsonrpc.Method {
	byHash, byNumber := (*parameter.Arguments).BlockHash, (*parameter.Arguments).BlockNumber
	transaction, raw := schema.OrNull(transactionSchema), eth.Result("Raw transaction", eth.Data)
	return []jsonrpc.Method{
		d.Method("eth_getTransactionByHash", eth.Own{Handler: a.ofHash(a.block, (*block).appendTransaction, a.appendUnmined), Result: transaction}),
		d.Method("eth_getTransactionByBlockHashAndIndex", eth.Own{Handler: a.inBlock(byHash, appendTransactionAt, "null"), Result: transaction}),
		d.Method("eth_getTransactionByBlockNumberAndIndex", eth.Own{
			Handler: a.inBlock(byNumber, appendTransactionAt, "null"), Result: transaction, Errors: namedBlockErrors,
		}),
		{
			Name: "eth_getRawTransactionByHash", Summary: "Returns the encoding of the transaction with a hash.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: raw,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.getRawTransaction(),
		},
		{
			Name: "eth_getRawTransactionByBlockHashAndIndex", Summary: "Returns the encoding of a transaction of the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash, d.Index}, Result: raw,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.inBlock(byHash, appendRawTransactionAt, noBytes),
		},
		{
			Name: "eth_getRawTransactionByBlockNumberAndIndex", Summary: "Returns the encoding of a transaction of the block with a number or a tag.",
			Params: []jsonrpc.Param{d.BlockNumber, d.Index}, Result: raw, Errors: namedBlockErrors,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.inBlock(byNumber, appendRawTransactionAt, noBytes),
		},
		d.Method("eth_getTransactionReceipt", eth.Own{
			Handler: a.ofHash(a.blockWithReceipts, (*block).appendReceipt, always("null")), Result: schema.OrNull(receiptSchema),
		}),
	}
}

// findIn finds a transaction by hash in a view and reads its block with read; nil if it does
// not exist.
func findIn(ctx context.Context, view *query.View, hash common.Hash, read blockReader) (b *block, index int, err error) {
	return findBy(ctx, view.FindTransaction, view, hash, read)
}

// findBy is findIn with a method of the view that finds transactions.
func findBy(ctx context.Context, find func(context.Context, common.Hash, func(archive.Place) (bool, error)) error, view *query.View, hash common.Hash, read blockReader) (b *block, index int, err error) {
	err = find(ctx, hash, func(place archive.Place) (bool, error) {
		candidate, err := read(ctx, view, place.Number)
		if err != nil {
			return false, err
		}
		found, err := candidate.holds(place.Index, hash)
		if found && err == nil {
			err = view.CheckBlock(place.Number)
		}
		if !found || err != nil {
			candidate.release()
			return false, err
		}
		b, index = candidate, place.Index
		return true, nil
	})
	return b, index, err
}

// holds reports whether transaction i of the block has that hash.
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

// appendAbsent appends the answer for a transaction that no block of a view has. It is not sure if the transaction
// may have left the pool for a block since the view was taken.
type appendAbsent func(out []byte, hash common.Hash) (answer []byte, sure bool, err error)

// ofHash answers about the transaction with a hash. appendFound appends the answer for a
// transaction of a block, which read has read; absent appends the answer if no block
// has the transaction.
func (a *API) ofHash(
	read blockReader,
	appendFound func(b *block, out []byte, index int, hash []byte) ([]byte, error),
	absent appendAbsent,
) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		hash := args.Hash(0)
		if args.Err != nil {
			return out, args.Err
		}
		for {
			view, err := a.chain.View()
			if err != nil {
				return out, err
			}
			b, index, err := findIn(ctx, view, hash, read)
			if err != nil {
				return out, err
			}
			if b != nil {
				defer b.release()
				return appendFound(b, out, index, hash[:])
			}
			answer, sure, err := absent(out, hash)
			if sure || err != nil {
				return answer, err
			}
			if now, err := a.chain.View(); err != nil || now.Head() == view.Head() {
				return answer, err
			}
		}
	}
}

// always returns a function that appends a constant answer.
func always(answer string) appendAbsent {
	return func(out []byte, _ common.Hash) ([]byte, bool, error) { return append(out, answer...), true, nil }
}

// getRawTransaction returns the handler of eth_getRawTransactionByHash and
// debug_getRawTransaction.
func (a *API) getRawTransaction() jsonrpc.Handler {
	return a.ofHash(a.block, func(b *block, out []byte, index int, _ []byte) ([]byte, error) {
		raw, err := b.body.Transaction(index)
		return appendHex(out, raw), err
	}, a.appendUnminedRaw)
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
