package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"ashlar/eth"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// stateMethods describes the methods about the state after a block.
func (a *API) stateMethods(d *eth.Description) []jsonrpc.Method {
	called := parameter.Concerning(calledContract)
	return []jsonrpc.Method{
		d.Method("eth_getBalance", eth.Answer{Handler: a.ofState("eth_getBalance", 1)}),
		d.Method("eth_getCode", eth.Answer{Handler: a.ofState("eth_getCode", 1)}),
		d.Method("eth_getTransactionCount", eth.Answer{Handler: a.ofState("eth_getTransactionCount", 1)}),
		d.Method("eth_getStorageAt", eth.Answer{Handler: a.ofState("eth_getStorageAt", 2), Result: eth.Data}),
		d.Method("eth_getProof", eth.Answer{Handler: a.ofState("eth_getProof", 2), Cost: waiting(100), Result: nodesResult}),
		d.Method("eth_call", eth.Answer{Handler: a.ofState("eth_call", 1), Cost: waiting(20), Concerns: called}),
		d.Method("eth_estimateGas", eth.Answer{Handler: a.ofState("eth_estimateGas", 1), Cost: waiting(50), Concerns: called}),
		d.Method("eth_createAccessList", eth.Answer{Handler: a.ofState("eth_createAccessList", 1), Cost: waiting(50), Concerns: called}),
		d.Method("eth_simulateV1", eth.Answer{Handler: a.ofState("eth_simulateV1", 1), Cost: waiting(100), Result: nodesResult}),
	}
}

// ofState returns the handler of a method with a block parameter at a position, after which
// others may come.
func (a *API) ofState(method string, at int) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, maxArguments, at)
		id := args.Block(at)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		block, err := resolve(view, &args, at, id)
		if err != nil {
			return out, err
		}
		q := query.Question{Method: method, Params: replaced(&args, at, block.ByNumber()), Block: block, History: upstream.States, Fixed: true}
		if byHash, ok := block.ByHash(); ok {
			q.Params, q.Numbered = replaced(&args, at, `{"blockHash":`+byHash+`}`), q.Params
		}
		return a.ask(ctx, view, q, out)
	}
}

var errOverrides = errors.New("expected no overrides, and no authorizationList")

// calledContract returns the contract that a message calls. It refuses messages that can run
// code other than that on the chain.
func calledContract(params []byte) ([]common.Address, error) {
	args := parameter.Read(params, maxArguments, 1)
	if args.Err != nil {
		return nil, args.Err
	}
	if err := namedOnce(args.Raw(0)); err != nil {
		return nil, err
	}
	var message struct {
		To   *common.Address   `json:"to"`
		Auth []json.RawMessage `json:"authorizationList"`
	}
	if err := json.Unmarshal(args.Raw(0), &message); err != nil {
		return nil, err
	}
	if args.Raw(2) != nil || len(message.Auth) > 0 {
		return nil, errOverrides
	}
	if message.To == nil {
		return nil, nil
	}
	return []common.Address{*message.To}, nil
}

// namedOnce returns an error unless a message has each member that decides what code runs at most once, in
// its own spelling. Of {"to":a,"TO":b}, some nodes call a and others b.
func namedOnce(message []byte) error {
	members, _ := jsonrpc.Object(message)
	given := make(map[string]bool)
	for members.Next() {
		for _, name := range []string{"to", "authorizationList"} {
			if !members.Name().Is(name) {
				continue
			}
			if given[name] || string(members.Name()) != name {
				return fmt.Errorf("nodes differ in how they read this call: expected %q once, in this spelling", name)
			}
			given[name] = true
		}
	}
	return nil
}

// feeMethods describes the methods about fees.
func (a *API) feeMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_gasPrice", eth.Answer{Handler: a.ofHead("eth_gasPrice")}),
		d.Method("eth_maxPriorityFeePerGas", eth.Answer{Handler: a.ofHead("eth_maxPriorityFeePerGas")}),
		d.Method("eth_blobBaseFee", eth.Answer{Handler: a.ofHead("eth_blobBaseFee")}),
		d.Method("eth_feeHistory", eth.Answer{Handler: a.feeHistory, Cost: jsonrpc.Light(50), Result: nodesResult}),
	}
}

// ofHead returns the handler of a method without parameters that is about the head.
func (a *API) ofHead(method string) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		if args := parameter.Read(params, 0, 0); args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		head := query.Block{Number: view.Head().Number, Hash: view.Head().Hash}
		return a.ask(ctx, view, query.Question{Method: method, Params: "[]", Block: head, Fixed: true}, out)
	}
}

// maxFeeBlocks is how many blocks a node answers eth_feeHistory for at most: geth's
// ethconfig.FullNodeGPO.MaxHeaderHistory.
const maxFeeBlocks = 1024

// feeHistory answers eth_feeHistory.
func (a *API) feeHistory(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 2)
	count, id := parameter.Decode(&args, 0, parameter.ParseCount), args.BlockNumber(1)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View(ctx)
	if err != nil {
		return out, err
	}
	block, err := query.Resolve(view, id)
	if errors.Is(err, query.ErrUnknownBlock) {
		return out, jsonrpc.Errorf(jsonrpc.CodeServer, "request beyond head block: requested %s, head %s",
			strconv.FormatUint(id.Number, 10), strconv.FormatUint(view.Head().Number, 10))
	}
	if err != nil {
		return out, err
	}
	q := query.Question{Method: "eth_feeHistory", Params: replaced(&args, 1, block.ByNumber()), Block: block, History: upstream.Blocks, Fixed: true}
	q.Before = min(max(count, 1), maxFeeBlocks) - 1
	return a.ask(ctx, view, q, out)
}
