package api

import (
	"context"
	"encoding/json"
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"
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
		d.Method("eth_getBlockByHash", eth.Own{Handler: a.blockByHash, Result: nodesResult}),
		d.Method("eth_getBlockByNumber", eth.Own{
			Handler: a.ofNumber(named{"eth_getBlockByNumber", "eth_getBlockByHash", 2, query.BlockCheck}), Result: nodesResult,
		}),
		d.Method("eth_getBlockReceipts", eth.Own{Handler: a.getBlockReceipts, Cost: a.recomputing(50), Result: nodesResult}),
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
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, n.arguments, n.arguments)
		id := args.BlockNumber(0)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		block, err := query.Resolve(view, id)
		if errors.Is(err, chain.ErrUnknownBlock) {
			return append(out, "null"...), nil
		}
		if err != nil {
			return out, err
		}
		q := query.Question{Method: n.method, Params: replaced(&args, 0, block.ByNumber()), Block: block, History: upstream.Blocks, Fixed: true}
		if byHash, ok := block.ByHash(); ok {
			q.Method, q.Params = n.byHash, replaced(&args, 0, byHash)
		}
		if n.check != nil && block.Named == nil {
			q.Check = n.check(block)
		}
		return a.ask(ctx, view, q, out)
	}
}

// ofHash returns the handler of a method whose first argument is the hash of a block, and
// whose answer does not say which block it is about. check, if not nil, is for the answer about a block of the view.
func (a *API) ofHash(method string, count int, check func(json.RawMessage) error) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, count, count)
		id := args.BlockHash(0)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		block, err := resolve(view, &args, 0, id)
		if err != nil {
			return out, err
		}
		q := query.Question{Method: method, Params: replaced(&args, 0, string(args.Raw(0))), Block: block, History: upstream.Blocks, Fixed: true}
		if block.Named == nil {
			q.Check = check
		}
		return a.ask(ctx, view, q, out)
	}
}

// blockByHash answers eth_getBlockByHash. A node that does not have a block of the view is on another branch, or late.
func (a *API) blockByHash(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	id := args.BlockHash(0)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View(ctx)
	if err != nil {
		return out, err
	}
	q := query.Question{Method: "eth_getBlockByHash", Params: replaced(&args, 0, string(args.Raw(0))), History: upstream.Blocks, Fixed: true}
	switch block, err := query.Resolve(view, id); {
	case err != nil:
		return out, err
	case block.Named == nil:
		q.Block, q.Check = block, query.BlockCheck(block)
	default:
		q.Found = query.NumberOf
	}
	return a.ask(ctx, view, q, out)
}

// lookup returns the handler of a method whose argument is the hash of a transaction, and whose answer says in which block it is.
// The answer is null if that block is not on the chain.
func (a *API) lookup(method string) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		args.Hash(0)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		q := query.Question{
			Method: method, Params: replaced(&args, 0, string(args.Raw(0))), History: upstream.Blocks, Fixed: true, Found: query.NumberOf, Check: query.PlaceCheck(view),
		}
		answered, err := a.ask(ctx, view, q, out)
		if errors.Is(err, query.ErrOtherBranch) {
			return append(out, "null"...), nil
		}
		return answered, err
	}
}

// getBlockReceipts answers eth_getBlockReceipts.
func (a *API) getBlockReceipts(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	id := args.Block(0)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View(ctx)
	if err != nil {
		return out, err
	}
	block, err := resolve(view, &args, 0, id)
	if errors.Is(err, chain.ErrUnknownBlock) || err == nil && id.Tag == chain.Pending {
		return append(out, "null"...), nil
	}
	if err != nil {
		return out, err
	}
	q := query.Question{Method: "eth_getBlockReceipts", Params: replaced(&args, 0, block.ByNumber()), Block: block, History: upstream.Blocks, Fixed: true}
	if byHash, ok := block.ByHash(); ok {
		q.Params, q.Numbered = replaced(&args, 0, byHash), q.Params
	}
	if block.Named == nil {
		q.Check = query.ExistsCheck
	}
	return a.ask(ctx, view, q, out)
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
