package api

import (
	"context"
	"slices"
	"strconv"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// networkMethods describes the methods about the network and the program.
func (a *API) networkMethods() []jsonrpc.Method {
	status := func(name, summary, resultName string, s *schema.Schema, answer func(context.Context, []byte) ([]byte, error)) jsonrpc.Method {
		return jsonrpc.Method{
			Name: name, Summary: summary, Result: result(resultName, s), Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract,
			Handler: func(ctx context.Context, params, out []byte) ([]byte, error) {
				if args := parameter.Read(params, 0, 0); args.Err != nil {
					return out, args.Err
				}
				return answer(ctx, out)
			},
		}
	}
	constant := func(answer string) func(context.Context, []byte) ([]byte, error) {
		return func(_ context.Context, out []byte) ([]byte, error) { return append(out, answer...), nil }
	}
	return []jsonrpc.Method{
		status("eth_chainId", "Returns the chain's identifier.", "Chain ID", quantity, func(ctx context.Context, out []byte) ([]byte, error) {
			id, err := a.chainID(ctx)
			return appendQuantity(out, id), err
		}),
		status("net_version", "Returns the chain's identifier in decimal.", "Network ID", schema.String, func(ctx context.Context, out []byte) ([]byte, error) {
			id, err := a.chainID(ctx)
			return jsonrpc.AppendString(out, strconv.FormatUint(id, 10)), err
		}),
		status("eth_blockNumber", "Returns the number of the head.", "Block number", quantity, func(ctx context.Context, out []byte) ([]byte, error) {
			view, err := a.chain.View(ctx)
			if err != nil {
				return out, err
			}
			return appendQuantity(out, view.Head().Number), nil
		}),
		status("eth_syncing", "Returns false: the network is at the head of its nodes.", "Syncing status", schema.Boolean, constant("false")),
		status("eth_accounts", "Returns an empty list: the server holds no accounts.", "Accounts", schema.Array(address), constant("[]")),
		status("net_listening", "Returns true.", "Listening", schema.Boolean, constant("true")),
		status("net_peerCount", "Returns 0: the server has no peers.", "Peer count", quantity, constant(`"0x0"`)),
		status("web3_clientVersion", "Returns the name and version of the program.", "Client version", schema.String,
			constant(string(jsonrpc.AppendString(nil, a.config.ClientVersion)))),
		{
			Name: "web3_sha3", Summary: "Returns the Keccak-256 hash of some data.",
			Params: []jsonrpc.Param{required("Data", "What is hashed.", data, jsonrpc.Given("0x68656c6c6f"))}, Result: result("Hash", hash),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: sha3,
		},
	}
}

// chainID returns the chain's ID, and waits until it is known.
func (a *API) chainID(ctx context.Context) (uint64, error) {
	if id := a.config.ChainID(); id != 0 {
		return id, nil
	}
	if _, err := a.chain.View(ctx); err != nil {
		return 0, err
	}
	return a.config.ChainID(), nil
}

// sha3 answers web3_sha3.
func sha3(_ context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	data := args.Bytes(0)
	if args.Err != nil {
		return out, args.Err
	}
	return jsonrpc.AppendString(out, hexutil.Encode(crypto.Keccak256(data))), nil
}

// allowedMethods describes the methods of the configuration's allow list, except for those
// that are described already. What they take and return is known to the nodes alone.
func (a *API) allowedMethods(described []jsonrpc.Method) (all []jsonrpc.Method) {
	for _, name := range a.config.Allowed {
		if slices.ContainsFunc(described, func(m jsonrpc.Method) bool { return m.Name == name }) {
			continue
		}
		all = append(all, jsonrpc.Method{
			Name: name, Summary: "Is passed to a node as it is.", Result: result("Result", object), Cost: credits(name), Concerns: jsonrpc.AnyContract,
			Params: []jsonrpc.Param{optional("Parameters", "As the nodes of the chain describe them.", object, nil)},
			Handler: func(ctx context.Context, params, out []byte) ([]byte, error) {
				answer, err := a.chain.Pass(ctx, name, string(params))
				if err != nil {
					return out, err
				}
				return appendResult(ctx, out, answer)
			},
		})
	}
	return all
}
