package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// stateMethods describes the methods about the state after a block.
func (a *API) stateMethods(d *eth.Description) []jsonrpc.Method {
	read := func(name string, own eth.Own) jsonrpc.Method {
		m := d.Method(name, own)
		at := slices.IndexFunc(m.Params, func(p jsonrpc.Param) bool { return p.Name == d.Block.Name })
		m.Handler = a.ofState(name, at)
		return m
	}
	called := parameter.Concerning(calledContract)
	return []jsonrpc.Method{
		read("eth_getBalance", eth.Own{}),
		read("eth_getCode", eth.Own{}),
		read("eth_getTransactionCount", eth.Own{}),
		read("eth_getStorageAt", eth.Own{Result: eth.Data}),
		read("eth_getProof", eth.Own{Cost: waiting(100), Result: nodesResult}),
		read("eth_call", eth.Own{Cost: waiting(20), Concerns: called}),
		read("eth_estimateGas", eth.Own{Cost: waiting(50), Concerns: called}),
		read("eth_createAccessList", eth.Own{Cost: waiting(50), Concerns: called}),
		read("eth_simulateV1", eth.Own{Cost: waiting(100), Result: nodesResult}),
	}
}

// ofState returns the handler of a method with a block parameter at a position, after which
// others may come.
func (a *API) ofState(method string, at int) jsonrpc.Handler {
	byAny := argument((*parameter.Arguments).Block, at)
	return asOfNow(a, maxArguments, at, byAny, func(ctx context.Context, c *blockCall, out []byte) ([]byte, error) {
		block, err := resolve(c, at)
		if err != nil {
			return out, err
		}
		q := query.Question{Method: method, Params: replaced(c.Arguments, at, block.ByNumber()), Block: block, History: upstream.States, Fixed: true}
		if byHash, ok := block.ByHash(); ok {
			q.Params, q.Numbered = replaced(c.Arguments, at, `{"blockHash":`+byHash+`}`), q.Params
		}
		return a.ask(ctx, c.view, q, out)
	})
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
	now := func(name string) jsonrpc.Method { return d.Method(name, eth.Own{Handler: a.ofHead(name)}) }
	return []jsonrpc.Method{
		now("eth_gasPrice"),
		now("eth_maxPriorityFeePerGas"),
		now("eth_blobBaseFee"),
		d.Method("eth_feeHistory", eth.Own{Handler: a.feeHistory(), Cost: jsonrpc.Light(50), Result: nodesResult}),
	}
}

// ofHead returns the handler of a method without parameters that is about the head.
func (a *API) ofHead(method string) jsonrpc.Handler {
	return asOfNow(a, 0, 0, noArgument, func(ctx context.Context, c *call[struct{}], out []byte) ([]byte, error) {
		head := query.Block{Number: c.view.Head().Number, Hash: c.view.Head().Hash}
		return a.ask(ctx, c.view, query.Question{Method: method, Params: "[]", Block: head, Fixed: true}, out)
	})
}

// maxFeeBlocks is how many blocks a node answers eth_feeHistory for at most: geth's
// ethconfig.FullNodeGPO.MaxHeaderHistory.
const maxFeeBlocks = 1024

// feeHistory returns the handler of eth_feeHistory.
func (a *API) feeHistory() jsonrpc.Handler {
	type blocks struct {
		count  uint64
		newest chain.BlockID
	}
	read := func(args *parameter.Arguments) blocks {
		return blocks{parameter.Decode(args, 0, parameter.ParseCount), args.BlockNumber(1)}
	}
	return asOfNow(a, 3, 2, read, func(ctx context.Context, c *call[blocks], out []byte) ([]byte, error) {
		block, err := query.Resolve(c.view, c.about.newest)
		if errors.Is(err, chain.ErrUnknownBlock) {
			return out, jsonrpc.Errorf(jsonrpc.CodeServer, "request beyond head block: requested %s, head %s",
				strconv.FormatUint(c.about.newest.Number, 10), strconv.FormatUint(c.view.Head().Number, 10))
		}
		if err != nil {
			return out, err
		}
		percentiles := "[]" // geth wants this argument, and the count in hexadecimal
		if c.Given(2) {
			percentiles = string(c.Raw(2))
		}
		asked := fmt.Sprintf(`["%#x",%s,%s]`, c.about.count, block.ByNumber(), percentiles)
		q := query.Question{Method: "eth_feeHistory", Params: asked, Block: block, History: upstream.Blocks, Fixed: true}
		q.Before = min(max(c.about.count, 1), maxFeeBlocks) - 1
		return a.ask(ctx, c.view, q, out)
	})
}
