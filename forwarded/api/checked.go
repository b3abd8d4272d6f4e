package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/check"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/limit"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// checkedLogMethods are methods whose logs package query checks.
var checkedLogMethods = []string{"eth_getLogs", "eth_getFilterLogs", "rollup_getEvents"}

// check replaces the handlers of methods whose answers are checked, and says which these are.
// The answers of all others are unverified.
func (a *API) check(methods []jsonrpc.Method) {
	handlers := a.checkedHandlers()
	for i := range methods {
		m := &methods[i]
		if handler := handlers[m.Name]; handler != nil {
			m.Handler = handler
		} else if !slices.Contains(checkedLogMethods, m.Name) {
			continue
		}
		m.Handler, m.Verified = m.Handler.FoundOnly(), jsonrpc.ByHeader
	}
}

// checkedHandlers returns the handlers, by method, of a network whose nodes are checked by
// header. They replace those that pass on what nodes say.
func (a *API) checkedHandlers() jsonrpc.Handlers {
	count := func(b *check.Block) json.RawMessage { return appendQuantity(nil, uint64(len(b.Transactions))) }
	uncles := func(*check.Block) json.RawMessage { return json.RawMessage(`"0x0"`) } // blocks with uncles are refused
	of := func(block blockArgument, value func(*check.Block) json.RawMessage) jsonrpc.Handler {
		return a.ofChecked(block, 1, func(_ context.Context, _ *forwarded.View, b *check.Block, _ *parameter.Arguments) (json.RawMessage, error) {
			return value(b), nil
		})
	}
	byNumber, byHash, byAny := (*parameter.Arguments).BlockNumber, (*parameter.Arguments).BlockHash, (*parameter.Arguments).Block
	return jsonrpc.Handlers{
		"eth_getBlockByNumber":                    a.ofChecked(byNumber, 2, a.checkedBlock),
		"eth_getBlockByHash":                      a.ofChecked(byHash, 2, a.checkedBlock),
		"eth_getBlockReceipts":                    a.ofChecked(byAny, 1, a.checkedReceipts),
		"eth_getBlockTransactionCountByNumber":    of(byNumber, count),
		"eth_getBlockTransactionCountByHash":      of(byHash, count),
		"eth_getUncleCountByBlockNumber":          of(byNumber, uncles),
		"eth_getUncleCountByBlockHash":            of(byHash, uncles),
		"eth_getUncleByBlockNumberAndIndex":       a.ofChecked(byNumber, 2, noUncle),
		"eth_getUncleByBlockHashAndIndex":         a.ofChecked(byHash, 2, noUncle),
		"eth_getTransactionByBlockNumberAndIndex": a.ofChecked(byNumber, 2, a.checkedTransactionAt),
		"eth_getTransactionByBlockHashAndIndex":   a.ofChecked(byHash, 2, a.checkedTransactionAt),
		"eth_getTransactionByHash":                a.checkedTransaction(a.transactionJSON),
		"eth_getTransactionReceipt":               a.checkedTransaction(a.receiptJSON),
	}
}

// blockArgument decodes the block parameter at a position; methods accept different kinds.
type blockArgument = func(args *parameter.Arguments, n int) chain.BlockID

// ofChecked returns the handler of a method about the block that the first argument names.
// The answer is null if there is none.
func (a *API) ofChecked(block blockArgument, count int,
	answer func(context.Context, *forwarded.View, *check.Block, *parameter.Arguments) (json.RawMessage, error)) jsonrpc.Handler {
	return asOfNow(a, count, count, argument(block, 0), func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		b, err := a.findChecked(ctx, c.view, c.about)
		if err != nil {
			return out, err
		}
		if b == nil {
			return append(out, "null"...), nil
		}
		result, err := answer(ctx, c.view, b, c.Arguments)
		if err != nil {
			return out, err
		}
		return appendResult(ctx, out, result)
	})
}

// findChecked returns a block, nil if there is none. The pending block cannot be checked: it
// is the latest.
func (a *API) findChecked(ctx context.Context, view *forwarded.View, id chain.BlockID) (*check.Block, error) {
	if id.Tag == chain.Pending {
		id.Tag = chain.Latest
	}
	block, err := query.Resolve(view, id)
	switch {
	case errors.Is(err, chain.ErrUnknownBlock):
		return nil, nil
	case err != nil:
		return nil, err
	case block.Named != nil:
		b, err := a.chain.CheckedBlockByHash(ctx, view, *id.Hash)
		if err == nil && b != nil && id.RequireCanonical {
			err = a.chain.CheckCanonical(ctx, view, b)
		}
		return b, err
	}
	if block, err = a.chain.Linked(ctx, block); err != nil {
		return nil, err
	}
	return a.chain.CheckedBlock(ctx, view, block)
}

func noUncle(context.Context, *forwarded.View, *check.Block, *parameter.Arguments) (json.RawMessage, error) {
	return json.RawMessage("null"), nil
}

func (a *API) checkedBlock(ctx context.Context, view *forwarded.View, b *check.Block, args *parameter.Arguments) (json.RawMessage, error) {
	whole := args.Bool(1)
	if args.Err != nil {
		return nil, args.Err
	}
	receipts, err := a.depositReceipts(ctx, view, b, whole)
	if err != nil {
		return nil, err
	}
	return b.JSON(whole, receipts)
}

// depositReceipts returns the receipts of a block if its transactions cannot be shown without.
func (a *API) depositReceipts(ctx context.Context, view *forwarded.View, b *check.Block, whole bool) ([]*check.Receipt, error) {
	if !whole || !b.HasDeposits() {
		return nil, nil
	}
	return a.chain.CheckedReceipts(ctx, view, b)
}

func (a *API) checkedReceipts(ctx context.Context, view *forwarded.View, b *check.Block, _ *parameter.Arguments) (json.RawMessage, error) {
	receipts, err := a.chain.CheckedReceipts(ctx, view, b)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	err = limit.Work(ctx, func() (err error) {
		all := make([]json.RawMessage, len(receipts))
		for i, r := range receipts {
			if all[i], err = b.ReceiptJSON(r); err != nil {
				return err
			}
		}
		result, err = json.Marshal(all)
		return err
	})
	return result, err
}

func (a *API) checkedTransactionAt(ctx context.Context, view *forwarded.View, b *check.Block, args *parameter.Arguments) (json.RawMessage, error) {
	index := args.Uint64(1)
	switch {
	case args.Err != nil:
		return nil, args.Err
	case index >= uint64(len(b.Transactions)):
		return json.RawMessage("null"), nil
	}
	return a.transactionJSON(ctx, view, b, int(index))
}

func (a *API) transactionJSON(ctx context.Context, view *forwarded.View, b *check.Block, i int) (json.RawMessage, error) {
	receipts, err := a.depositReceipts(ctx, view, b, true)
	if err != nil {
		return nil, err
	}
	return b.TransactionJSON(i, receipts)
}

func (a *API) receiptJSON(ctx context.Context, view *forwarded.View, b *check.Block, i int) (json.RawMessage, error) {
	receipts, err := a.chain.CheckedReceipts(ctx, view, b)
	if err != nil {
		return nil, err
	}
	return b.ReceiptJSON(receipts[i])
}

// checkedTransaction returns the handler of a method about the transaction with a hash. A node
// says in which block it is; that it is there is checked. That there is none cannot be
// checked, so null is what the node says, and a pending transaction is null.
func (a *API) checkedTransaction(answer func(context.Context, *forwarded.View, *check.Block, int) (json.RawMessage, error)) jsonrpc.Handler {
	byHash := argument((*parameter.Arguments).Hash, 0)
	return asOfNow(a, 1, 1, byHash, func(ctx context.Context, c *call[common.Hash], out []byte) ([]byte, error) {
		b, i, err := a.chain.CheckedTransaction(ctx, c.view, c.about)
		if err != nil {
			return out, err
		}
		if b == nil {
			return append(out, "null"...), nil
		}
		result, err := answer(ctx, c.view, b, i)
		if err != nil {
			return out, err
		}
		return appendResult(ctx, out, result)
	})
}
