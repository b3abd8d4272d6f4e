package api

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// named describes how a method is asked whose parameter is a block.
type named struct {
	method    string
	byHash    string // the method that takes the block's hash in its place
	arguments int
	check     func(query.Block) func(json.RawMessage) error // nil: none
}

// blockMethods describes the methods about blocks.
func (a *API) blockMethods(d *eth.Description) []jsonrpc.Method {
	exists := func(query.Block) func(json.RawMessage) error { return query.ExistsCheck }
	byNumber := func(method, byHash string, check func(query.Block) func(json.RawMessage) error) jsonrpc.Method {
		return d.Method(method, eth.Own{Handler: a.ofNumber(named{method, byHash, 1, check})})
	}
	byHash := func(method string) jsonrpc.Method {
		return d.Method(method, eth.Own{Handler: a.ofHash(method, 1, query.ExistsCheck)})
	}
	return []jsonrpc.Method{
		d.Method("eth_getBlockByHash", eth.Own{Handler: a.blockByHash(), Result: nodesResult}),
		d.Method("eth_getBlockByNumber", eth.Own{
			Handler: a.ofNumber(named{"eth_getBlockByNumber", "eth_getBlockByHash", 2, query.BlockCheck}), Result: nodesResult,
		}),
		d.Method("eth_getBlockReceipts", eth.Own{Handler: a.getBlockReceipts(), Cost: a.recomputing(50), Result: nodesResult}),
		byHash("eth_getBlockTransactionCountByHash"),
		byNumber("eth_getBlockTransactionCountByNumber", "eth_getBlockTransactionCountByHash", exists),
		byHash("eth_getUncleCountByBlockHash"),
		byNumber("eth_getUncleCountByBlockNumber", "eth_getUncleCountByBlockHash", exists),
		d.Method("eth_getUncleByBlockHashAndIndex", eth.Own{Handler: a.ofHash("eth_getUncleByBlockHashAndIndex", 2, nil), Result: nodesResult}),
		d.Method("eth_getUncleByBlockNumberAndIndex", eth.Own{
			Handler: a.ofNumber(named{"eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex", 2, nil}), Result: nodesResult,
		}),
	}
}

// ofNumber returns the handler of a method whose first argument is the number or tag of a
// block. The answer is null if there is no such block. A newer block is asked for by its hash.
func (a *API) ofNumber(n named) jsonrpc.Handler {
	byNumber := argument((*parameter.Arguments).BlockNumber, 0)
	return asOfNow(a, n.arguments, n.arguments, byNumber, func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		block, err := query.Resolve(c.view, c.about)
		if errors.Is(err, chain.ErrUnknownBlock) {
			return append(out, "null"...), nil
		}
		if err != nil {
			return out, err
		}
		q := query.Question{Method: n.method, Params: replaced(c.Arguments, 0, block.ByNumber()), Block: block, History: upstream.Blocks, Fixed: true}
		if byHash, ok := block.ByHash(); ok {
			q.Method, q.Params = n.byHash, replaced(c.Arguments, 0, byHash)
		}
		if n.check != nil && block.Named == nil {
			q.Check = n.check(block)
		}
		return a.ask(ctx, c.view, q, out)
	})
}

// ofHash returns the handler of a method whose first argument is the hash of a block, and
// whose answer does not say which block it is about. check, if not nil, is for the answer about a block of the view.
func (a *API) ofHash(method string, count int, check func(json.RawMessage) error) jsonrpc.Handler {
	byHash := argument((*parameter.Arguments).BlockHash, 0)
	return asOfNow(a, count, count, byHash, func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		block, err := resolve(c, 0)
		if err != nil {
			return out, err
		}
		q := query.Question{Method: method, Params: replaced(c.Arguments, 0, string(c.Raw(0))), Block: block, History: upstream.Blocks, Fixed: true}
		if block.Named == nil {
			q.Check = check
		}
		return a.ask(ctx, c.view, q, out)
	})
}

// blockByHash returns the handler of eth_getBlockByHash. A node that does not have a block of the view is on another branch, or late.
func (a *API) blockByHash() jsonrpc.Handler {
	byHash := argument((*parameter.Arguments).BlockHash, 0)
	return asOfNow(a, 2, 2, byHash, func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		q := query.Question{Method: "eth_getBlockByHash", Params: replaced(c.Arguments, 0, string(c.Raw(0))), History: upstream.Blocks, Fixed: true}
		switch block, err := query.Resolve(c.view, c.about); {
		case err != nil:
			return out, err
		case block.Named == nil:
			q.Block, q.Check = block, query.BlockCheck(block)
		default:
			q.Found = query.NumberOf
		}
		return a.ask(ctx, c.view, q, out)
	})
}

// lookup returns the handler of a method whose argument is the hash of a transaction, and whose answer says in which block it is.
// The answer is null if that block is not on the chain.
func (a *API) lookup(method string) jsonrpc.Handler {
	byHash := argument((*parameter.Arguments).Hash, 0)
	return asOfNow(a, 1, 1, byHash, func(ctx context.Context, c *call[common.Hash], out []byte) ([]byte, error) {
		var late atomic.Bool // a node does not have the transaction, which is in a block of the view
		check := query.TransactionCheck(c.view, c.about)
		q := query.Question{
			Method: method, Params: replaced(c.Arguments, 0, string(c.Raw(0))), History: upstream.Blocks, Fixed: true, Found: query.NumberOf,
			Check: func(result json.RawMessage) error {
				err := check(result)
				if errors.Is(err, query.ErrLate) {
					late.Store(true)
				}
				return err
			},
		}
		answered, err := a.ask(ctx, c.view, q, out)
		if err != nil && late.Load() && ctx.Err() == nil { // all nodes that answer say so
			q.Check = query.PlaceCheck(c.view)
			answered, err = a.ask(ctx, c.view, q, out)
		}
		if errors.Is(err, query.ErrOtherBranch) {
			return append(out, "null"...), nil
		}
		return answered, err
	})
}

// getBlockReceipts returns the handler of eth_getBlockReceipts.
func (a *API) getBlockReceipts() jsonrpc.Handler {
	byAny := argument((*parameter.Arguments).Block, 0)
	return asOfNow(a, 1, 1, byAny, func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		block, err := resolve(c, 0)
		if errors.Is(err, chain.ErrUnknownBlock) || err == nil && c.about.Tag == chain.Pending {
			return append(out, "null"...), nil
		}
		if err != nil {
			return out, err
		}
		q := query.Question{Method: "eth_getBlockReceipts", Params: replaced(c.Arguments, 0, block.ByNumber()), Block: block, History: upstream.Blocks, Fixed: true}
		if byHash, ok := block.ByHash(); ok {
			q.Params, q.Numbered = replaced(c.Arguments, 0, byHash), q.Params
		}
		if block.Named == nil {
			q.Check = query.ExistsCheck
		}
		return a.ask(ctx, c.view, q, out)
	})
}

// ask asks a question and appends the answer. If the answer is about a block above the head,
// it waits until the head gets there, because clients may ask about that block next.
func (a *API) ask(ctx context.Context, view *forwarded.View, q query.Question, out []byte) ([]byte, error) {
	answer, err := a.chain.Ask(ctx, view, q)
	if err != nil {
		return out, err
	}
	if q.Found != nil {
		if number, ok := q.Found(answer); ok && number > view.Head().Number {
			if a.chain.AwaitBlock(ctx, number) != nil || query.PlaceCheck(a.chain.Present())(answer) != nil {
				return append(out, "null"...), nil
			}
		}
	}
	return appendResult(ctx, out, answer)
}
