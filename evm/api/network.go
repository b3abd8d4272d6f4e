package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/crypto"
)

// networkMethods describes the methods about the network and the program.
func (a *API) networkMethods() []jsonrpc.Method {
	chainID := a.chain.Executor().Config().ChainID
	networkID := strconv.FormatUint(a.config.NetworkID, 10)
	if a.config.NetworkID == 0 {
		networkID = chainID.String()
	}
	status := func(name, summary, resultName string, s *schema.Schema, handler jsonrpc.Handler) jsonrpc.Method {
		return jsonrpc.Method{
			Name: name, Summary: summary, Result: result(resultName, s),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: handler,
		}
	}
	return []jsonrpc.Method{
		status("eth_chainId", "Returns the chain's identifier.", "Chain ID", quantitySchema, constant(appendBig(nil, chainID))),
		status("eth_syncing", "Returns how far the network is behind the head that it follows, false where it is not.", "Syncing status",
			schema.AnyOf(schema.Boolean, syncSchema), a.syncing),
		status("eth_accounts", "Returns an empty list: the server holds no accounts.", "Accounts", schema.Array(addressSchema), constant([]byte("[]"))),
		status("eth_pendingTransactions", "Returns an empty list: the server holds no accounts, and lists only what these have sent, as geth does.",
			"Pending transactions", schema.Array(transactionSchema), constant([]byte("[]"))),
		status("eth_blockNumber", "Returns the number of the head.", "Block number", quantitySchema, a.blockNumber),
		status("net_version", "Returns the network's identifier in decimal.", "Network ID", schema.String, constant(jsonrpc.AppendString(nil, networkID))),
		status("net_listening", "Returns true.", "Listening", schema.Boolean, constant([]byte("true"))),
		status("net_peerCount", "Returns 0: the server has no peers.", "Peer count", quantitySchema, constant([]byte(`"0x0"`))),
		status("web3_clientVersion", "Returns the name and version of the program.", "Client version", schema.String, constant(jsonrpc.AppendString(nil, a.config.ClientVersion))),
		{
			Name: "web3_sha3", Summary: "Returns the Keccak-256 hash of some data.",
			Params: []jsonrpc.Param{required("Data", "What is hashed.", dataSchema, jsonrpc.Given("0x68656c6c6f"))}, Result: result("Hash", hashSchema),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: sha3,
		},
	}
}

// constant returns the handler of a method without parameters and with a constant answer.
func constant(answer []byte) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		if args := parameter.Read(params, 0, 0); args.Err != nil {
			return out, args.Err
		}
		return append(out, answer...), nil
	}
}

// modulesMethod describes rpc_modules, which returns the methods' namespaces with their
// versions.
func modulesMethod(methods []jsonrpc.Method) jsonrpc.Method {
	names := []string{"rpc"}
	for _, method := range methods {
		name, _, _ := strings.Cut(method.Name, "_")
		names = append(names, name)
	}
	slices.Sort(names)
	answer := []byte{'{'}
	for i, name := range slices.Compact(names) {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = append(jsonrpc.AppendString(answer, name), `:"1.0"`...)
	}
	return jsonrpc.Method{
		Name: "rpc_modules", Summary: "Returns the groups of methods with their versions.",
		Result: result("Modules", schema.Map(schema.String)),
		Cost:   jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: constant(append(answer, '}')),
	}
}

func (a *API) blockNumber(_ context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	return appendQuantity(out, view.Head().Number), nil
}

// sha3 answers web3_sha3, the keccak-256 hash of data.
func sha3(_ context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	data := args.Bytes(0)
	if args.Err != nil {
		return out, args.Err
	}
	return appendHex(out, crypto.Keccak256(data)), nil
}
