package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// stateMethods describes the methods about the state after a block.
func (a *API) stateMethods(p parameters) []jsonrpc.Method {
	read := func(name, summary string, s *schema.Schema, cost jsonrpc.Cost, concerns jsonrpc.Concerns, params ...jsonrpc.Param) jsonrpc.Method {
		at := len(params)
		for i, param := range params {
			if param.Name == p.state.Name {
				at = i
			}
		}
		return jsonrpc.Method{Name: name, Summary: summary, Params: params, Result: result("Result", s), Cost: cost, Concerns: concerns, Handler: a.ofState(name, at)}
	}
	slotKey := required("Storage slot", "The key of the slot.", slot, jsonrpc.Given("0x0"))
	keys := required("Storage keys", "The keys of the slots to prove.", schema.Array(slot), jsonrpc.Given([]string{}))
	overrides := optional("State overrides", "What the message sees of accounts in place of their contents.", object, nil)
	blockOverrides := optional("Block overrides", "Members of the block that the message sees with other values.", object, nil)
	payload := required("Payload", "The blocks and messages to simulate.", object, jsonrpc.Given(map[string]any{"blockStateCalls": []any{}}))
	account, called := parameter.Concerning(firstAddress), parameter.Concerning(calledContract)
	return []jsonrpc.Method{
		read("eth_getBalance", "Returns the balance of an account.", quantity, jsonrpc.Light(10), account, p.address, p.state),
		read("eth_getCode", "Returns the code of an account.", data, jsonrpc.Light(10), account, p.address, p.state),
		read("eth_getTransactionCount", "Returns the nonce of an account.", quantity, jsonrpc.Light(10), account, p.address, p.state),
		read("eth_getStorageAt", "Returns the value of a storage slot.", data, jsonrpc.Light(10), account, p.address, slotKey, p.state),
		read("eth_getProof", "Returns an account with the proofs of it and of some of its slots.", object, waiting(100), account, p.address, keys, p.state),
		read("eth_call", "Runs a message and returns what it returns.", data, waiting(20), called, p.call, p.state, overrides, blockOverrides),
		read("eth_estimateGas", "Returns how much gas a message needs.", quantity, waiting(50), called, p.call, p.state, overrides),
		read("eth_createAccessList", "Runs a message and returns what it accesses.", object, waiting(50), called, p.call, p.state, overrides),
		read("eth_simulateV1", "Runs messages in simulated blocks after a block.", object, waiting(100), jsonrpc.AnyContract, payload, p.state),
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

// firstAddress returns the first argument, an address.
func firstAddress(params []byte) ([]common.Address, error) {
	args := parameter.Read(params, maxArguments, 1)
	address := args.Address(0)
	return []common.Address{address}, args.Err
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
func (a *API) feeMethods() []jsonrpc.Method {
	fee := func(name, summary string) jsonrpc.Method {
		return jsonrpc.Method{
			Name: name, Summary: summary, Result: result("Fee", quantity), Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract,
			Handler: func(ctx context.Context, params, out []byte) ([]byte, error) {
				if args := parameter.Read(params, 0, 0); args.Err != nil {
					return out, args.Err
				}
				view, err := a.chain.View(ctx)
				if err != nil {
					return out, err
				}
				head := query.Block{Number: view.Head().Number, Hash: view.Head().Hash}
				return a.ask(ctx, view, query.Question{Method: name, Params: "[]", Block: head, Fixed: true}, out)
			},
		}
	}
	history := fee("eth_feeHistory", "Returns base fees, rewards and shares of gas used of a range of blocks.")
	history.Params = []jsonrpc.Param{
		required("Block count", "How many blocks.", quantity, jsonrpc.Given("0x4")),
		required("Newest block", "The last block of the range.", blockNumber, jsonrpc.Given("latest")),
		optional("Reward percentiles", "Shares of the gas in percent, ascending.", schema.Array(schema.Number), nil),
	}
	history.Result, history.Cost, history.Handler = result("Fee history", object), jsonrpc.Light(50), a.feeHistory
	return []jsonrpc.Method{
		fee("eth_gasPrice", "Returns a gas price with which a transaction is likely to be included."),
		fee("eth_maxPriorityFeePerGas", "Returns a tip with which a transaction is likely to be included."),
		fee("eth_blobBaseFee", "Returns the price of blob gas in the next block."),
		history,
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
