package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/pool"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// poolMethods describes the methods that accept transactions or return pooled ones. They
// are not restricted by contract.
func (a *API) poolMethods(d *eth.Description) []jsonrpc.Method {
	bySender := schema.Map(poolContentSchema)
	content := func(s *schema.Schema) *schema.Schema {
		return schema.Object(schema.Members{"pending": s, "queued": s}, nil)
	}
	return []jsonrpc.Method{
		d.Method("eth_sendRawTransaction", eth.Own{
			// A transaction may have blobs. The cost is still light: most calls only wait
			// for an upstream node, and the pool checks blob proofs one transaction at a
			// time.
			Handler: a.sendRawTransaction, Cost: jsonrpc.Light(50), ExampleFails: includedExample, Errors: append(errorsOf(errTakesNone), sendErrors()...),
		}),
		{
			Name: "txpool_status", Summary: "Returns how many transactions wait.",
			Result: eth.Result("Transaction pool status", content(eth.Quantity)),
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.poolStatus,
		},
		{
			Name: "txpool_content", Summary: "Returns all transactions that wait, by sender and nonce.",
			Result: eth.Result("Transaction pool content", content(bySender)),
			Cost:   jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.poolContent(appendPooled),
		},
		{
			Name: "txpool_inspect", Summary: "Returns a line of text about each transaction that waits, by sender and nonce.",
			Result: eth.Result("Transaction pool summary", content(schema.Map(schema.Map(schema.String)))),
			Cost:   jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.poolContent(appendInspected),
		},
		{
			Name: "txpool_contentFrom", Summary: "Returns the transactions of one sender that wait, by nonce.",
			Params: []jsonrpc.Param{eth.Required("address", "The sender.", eth.Address, a.example(func(s *sample) any { return s.sender }))},
			Result: eth.Result("Transaction pool content from address", content(poolContentSchema)),
			Cost:   jsonrpc.Light(20), Concerns: jsonrpc.NoContract, Handler: a.poolContentFrom,
		},
	}
}

// errTakesNone is the error on networks without an upstream node, whose blocks come from
// files, and on read-only networks.
var errTakesNone = &jsonrpc.Error{
	Code:    jsonrpc.CodeServer,
	Message: "this network accepts no transactions: no upstream node is configured",
}

// includedExample is why examples of sending are answered with an error.
const includedExample = "The example is a transaction that a block has already, so it is refused. Replace it with one that you have signed."

// sendErrors are the usual reasons why a transaction is not taken, or not known to be.
func sendErrors() (all []*jsonrpc.Error) {
	for _, message := range []string{
		"nonce too low", "already known", "replacement transaction underpriced", "insufficient funds for gas * price + value",
		upstream.Unconfirmed(context.DeadlineExceeded).Error(),
	} {
		all = append(all, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: message})
	}
	return all
}

// sendRawTransaction answers eth_sendRawTransaction.
func (a *API) sendRawTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	raw := args.Bytes(0)
	if args.Err != nil {
		return out, args.Err
	}
	hash, err := a.submit(ctx, raw)
	if err != nil {
		return out, err
	}
	return appendHex(out, hash[:]), nil
}

// submit takes a transaction to be included, and returns its hash.
func (a *API) submit(ctx context.Context, raw []byte) (hash common.Hash, err error) {
	if a.chain.Pool() == nil {
		return hash, errTakesNone
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return hash, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: err.Error()}
	}
	waiting, err := a.chain.AwaitPool(ctx)
	if err != nil {
		return hash, err
	}
	if err := a.take(ctx, waiting, tx, raw); err != nil {
		var known *jsonrpc.Error
		var unread *pool.StateError
		if ctx.Err() != nil || errors.As(err, &known) || errors.As(err, &unread) {
			return hash, err
		}
		return hash, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: err.Error()}
	}
	return tx.Hash(), nil
}

// take adds a transaction to the pool and forwards it if configured.
func (a *API) take(ctx context.Context, waiting *pool.Pool, tx *types.Transaction, raw []byte) error {
	if a.config.Forward == nil {
		return waiting.Add(ctx, tx)
	}
	return waiting.AddForwarded(ctx, tx, func() error { return a.config.Forward(ctx, raw) })
}

// poolStatus answers txpool_status.
func (a *API) poolStatus(_ context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
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

// appendOne appends a representation of a pooled transaction.
type appendOne func(out []byte, sender common.Address, tx *types.Transaction) ([]byte, error)

// poolContent answers txpool_content and txpool_inspect, which differ in the representation
// of transactions.
func (a *API) poolContent(one appendOne) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		if args := parameter.Read(params, 0, 0); args.Err != nil {
			return out, args.Err
		}
		var content map[common.Address]pool.Content
		if waiting := a.chain.Pool(); waiting != nil {
			content = waiting.Content()
		}
		senders := slices.SortedFunc(maps.Keys(content), func(x, y common.Address) int { return bytes.Compare(x[:], y[:]) })
		room := jsonrpc.RoomFor(ctx, out)
		pending := func(sender common.Address) types.Transactions { return content[sender].Pending }
		queued := func(sender common.Address) types.Transactions { return content[sender].Queued }
		out, err := appendContent(append(out, `{"pending":`...), room, senders, pending, one)
		if err != nil {
			return out, err
		}
		out, err = appendContent(append(out, `,"queued":`...), room, senders, queued, one)
		return append(out, '}'), err
	}
}

// appendInspected appends a transaction as a line of text, in geth's format.
func appendInspected(out []byte, _ common.Address, tx *types.Transaction) ([]byte, error) {
	to := "contract creation"
	if tx.To() != nil {
		to = tx.To().Hex()
	}
	return jsonrpc.AppendString(out, fmt.Sprintf("%s: %v wei + %d gas × %v wei", to, tx.Value(), tx.Gas(), tx.GasPrice())), nil
}

// appendContent appends the transactions of the senders that have any, by sender.
func appendContent(out []byte, room jsonrpc.Room, senders []common.Address, of func(common.Address) types.Transactions, one appendOne) (_ []byte, err error) {
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
		if out, err = appendByNonce(out, room, senders[0], list, one); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// poolContentFrom answers txpool_contentFrom.
func (a *API) poolContentFrom(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	sender := args.Address(0)
	if args.Err != nil {
		return out, args.Err
	}
	var content pool.Content
	if waiting := a.chain.Pool(); waiting != nil {
		content = waiting.ContentFrom(sender)
	}
	room := jsonrpc.RoomFor(ctx, out)
	out, err := appendByNonce(append(out, `{"pending":`...), room, sender, content.Pending, appendPooled)
	if err != nil {
		return out, err
	}
	out, err = appendByNonce(append(out, `,"queued":`...), room, sender, content.Queued, appendPooled)
	return append(out, '}'), err
}

// appendByNonce appends a sender's transactions as an object keyed by nonce.
func appendByNonce(out []byte, room jsonrpc.Room, sender common.Address, list types.Transactions, one appendOne) (_ []byte, err error) {
	out = append(out, '{')
	for i, tx := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, strconv.FormatUint(tx.Nonce(), 10)), ':')
		if out, err = one(out, sender, tx); err != nil {
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

// appendUnmined appends a transaction that is in no block: from the pool, or null.
func (a *API) appendUnmined(out []byte, hash common.Hash) (answer []byte, sure bool, err error) {
	waiting := a.chain.Pool()
	if waiting == nil {
		return appendNull(out), true, nil
	}
	tx, sender, ok := waiting.Get(hash)
	if !ok {
		return appendNull(out), false, nil
	}
	answer, err = appendPooled(out, sender, tx)
	return answer, true, err
}

// appendUnminedRaw appends the encoding of a transaction that is in no block: from the pool, with its
// blobs as in geth, or none.
func (a *API) appendUnminedRaw(out []byte, hash common.Hash) (answer []byte, sure bool, err error) {
	waiting := a.chain.Pool()
	if waiting == nil {
		return append(out, noBytes...), true, nil
	}
	tx, _, ok := waiting.GetWithBlobs(hash)
	if !ok {
		return append(out, noBytes...), false, nil
	}
	raw, err := tx.MarshalBinary()
	return appendHex(out, raw), true, err
}

// pendingNonce returns the nonce of a sender's next transaction: after all pooled ones,
// including those that do not fit into the pending block.
func (a *API) pendingNonce(ctx context.Context, id chain.BlockID, address common.Address) (nonce uint64, ok bool, err error) {
	if id.Tag != chain.Pending {
		return 0, false, nil
	}
	waiting, err := a.chain.AwaitPool(ctx)
	if waiting == nil || err != nil {
		return 0, false, err
	}
	if a.chain.HeadIsRemote() {
		jsonrpc.Weaken(ctx, jsonrpc.Unverified) // no block proves what waits
	}
	nonce, err = waiting.Nonce(ctx, address)
	return nonce, true, err
}
