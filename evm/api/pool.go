package api

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// poolMethods take transactions in, and tell what waits to be included.
func (a *API) poolMethods() jsonrpc.Handlers {
	return jsonrpc.Handlers{
		"eth_sendRawTransaction": a.sendRawTransaction,
		"txpool_status":          a.poolStatus,
		"txpool_content":         a.poolContent,
		"txpool_contentFrom":     a.poolContentFrom,
	}
}

// errTakesNone answers on a network whose blocks come from files, and on one that is
// only to be read.
var errTakesNone = &jsonrpc.Error{
	Code:    jsonrpc.CodeServer,
	Message: "this network takes no transactions: there is no node that they are passed to",
}

// sendRawTransaction answers eth_sendRawTransaction.
func (a *API) sendRawTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	raw := args.bytes(0)
	if args.err != nil {
		return out, args.err
	}
	waiting := a.chain.Pool()
	if waiting == nil {
		return out, errTakesNone
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: err.Error()}
	}
	if !tx.Protected() {
		return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "only replay-protected (EIP-155) transactions allowed over RPC"}
	}
	if err := a.take(ctx, waiting, tx, raw); err != nil {
		var known *jsonrpc.Error
		if ctx.Err() != nil || errors.As(err, &known) {
			return out, err
		}
		return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: err.Error()}
	}
	hash := tx.Hash()
	return appendHex(out, hash[:]), nil
}

// take takes a transaction into the pool, and passes it on if it is to be.
func (a *API) take(ctx context.Context, waiting *pool.Pool, tx *types.Transaction, raw []byte) error {
	if a.config.Forward == nil {
		return waiting.Add(ctx, tx)
	}
	return waiting.AddForwarded(ctx, tx, func() error { return a.config.Forward(ctx, raw) })
}

// poolStatus answers txpool_status.
func (a *API) poolStatus(_ context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	var pending, queued int
	if waiting := a.chain.Pool(); waiting != nil {
		pending, queued = waiting.Stats()
	}
	out = append(out, `{"pending":`...)
	out = appendQuantity(out, uint64(pending))
	out = append(out, `,"queued":`...)
	return append(appendQuantity(out, uint64(queued)), '}'), nil
}

// poolContent answers txpool_content.
func (a *API) poolContent(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	var content map[common.Address]pool.Content
	if waiting := a.chain.Pool(); waiting != nil {
		content = waiting.Content()
	}
	senders := slices.SortedFunc(maps.Keys(content), func(x, y common.Address) int { return bytes.Compare(x[:], y[:]) })
	room := jsonrpc.RoomFor(ctx, out)
	out, err := appendContent(append(out, `{"pending":`...), room, senders, func(sender common.Address) types.Transactions { return content[sender].Pending })
	if err != nil {
		return out, err
	}
	out, err = appendContent(append(out, `,"queued":`...), room, senders, func(sender common.Address) types.Transactions { return content[sender].Queued })
	return append(out, '}'), err
}

// appendContent appends the transactions of some senders that have any, by sender.
func appendContent(out []byte, room jsonrpc.Room, senders []common.Address, of func(common.Address) types.Transactions) (_ []byte, err error) {
	out = append(out, '{')
	for begin := len(out); len(senders) > 0; senders = senders[1:] {
		list := of(senders[0])
		if len(list) == 0 {
			continue
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, senders[0].Hex()), ':')
		if out, err = appendByNonce(out, room, senders[0], list); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// poolContentFrom answers txpool_contentFrom.
func (a *API) poolContentFrom(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	sender := args.address(0)
	if args.err != nil {
		return out, args.err
	}
	var content pool.Content
	if waiting := a.chain.Pool(); waiting != nil {
		content = waiting.ContentFrom(sender)
	}
	room := jsonrpc.RoomFor(ctx, out)
	out, err := appendByNonce(append(out, `{"pending":`...), room, sender, content.Pending)
	if err != nil {
		return out, err
	}
	out, err = appendByNonce(append(out, `,"queued":`...), room, sender, content.Queued)
	return append(out, '}'), err
}

// appendByNonce appends a sender's transactions as an object by their nonces.
func appendByNonce(out []byte, room jsonrpc.Room, sender common.Address, list types.Transactions) (_ []byte, err error) {
	out = append(out, '{')
	for i, tx := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, strconv.FormatUint(tx.Nonce(), 10)), ':')
		if out, err = appendPooled(out, sender, tx); err != nil {
			return out, err
		}
		if err := room.Check(len(out)); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

func appendPooled(out []byte, sender common.Address, tx *types.Transaction) ([]byte, error) {
	raw, err := tx.MarshalBinary()
	if err != nil {
		return out, err
	}
	return appendWaiting(out, raw, sender, tx.Hash())
}

// appendUnmined appends the transaction with a hash that is in no block: null unless it
// waits in the pool.
func (a *API) appendUnmined(out []byte, hash common.Hash) ([]byte, error) {
	if waiting := a.chain.Pool(); waiting != nil {
		if tx, sender, ok := waiting.Get(hash); ok {
			return appendPooled(out, sender, tx)
		}
	}
	return appendNull(out), nil
}

// pendingNonce is the nonce that a sender's next transaction takes: behind all that
// wait, also where the pending block has no room for them.
func (a *API) pendingNonce(ctx context.Context, id query.BlockID, address common.Address) (nonce uint64, ok bool, err error) {
	waiting := a.chain.Pool()
	if id.Tag != query.Pending || waiting == nil {
		return 0, false, nil
	}
	nonce, err = waiting.Nonce(ctx, address)
	return nonce, true, err
}
