package eth

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// network describes the methods about the network and the program, but eth_syncing, which families answer
// in forms of their own.
func (d *Description) network() []jsonrpc.Method {
	return unrestricted(
		jsonrpc.Method{
			Name: "eth_chainId", Summary: "Returns the chain's identifier.",
			Result: Result("Chain ID", Quantity), Cost: jsonrpc.Light(1),
		},
		jsonrpc.Method{
			Name: "eth_blockNumber", Summary: "Returns the number of the head.",
			Result: Result("Block number", Quantity), Cost: jsonrpc.Light(1),
		},
		jsonrpc.Method{
			Name: "net_version", Summary: "Returns the network's identifier in decimal.",
			Result: Result("Network ID", schema.String), Cost: jsonrpc.Light(1),
		},
		jsonrpc.Method{
			Name: "web3_clientVersion", Summary: "Returns the name and version of the program.",
			Result: Result("Client version", schema.String), Cost: jsonrpc.Light(1),
		},
	)
}

// Alike describes the methods that all families answer alike, with their handlers.
func (d *Description) Alike() []jsonrpc.Method {
	return unrestricted(
		jsonrpc.Method{
			Name: "eth_accounts", Summary: "Returns an empty list: the server holds no accounts.",
			Result: Result("Accounts", schema.Array(Address)), Cost: jsonrpc.Light(1), Handler: Constant([]byte("[]")),
		},
		jsonrpc.Method{
			Name: "eth_pendingTransactions", Summary: "Returns an empty list: the server holds no accounts, and lists only what these have sent, as geth does.",
			Result: Result("Pending transactions", schema.Array(schema.Any)), Cost: jsonrpc.Light(1), Handler: Constant([]byte("[]")),
		},
		jsonrpc.Method{
			Name: "net_listening", Summary: "Returns true.",
			Result: Result("Listening", schema.Boolean), Cost: jsonrpc.Light(1), Handler: Constant([]byte("true")),
		},
		jsonrpc.Method{
			Name: "net_peerCount", Summary: "Returns 0: the server has no peers.",
			Result: Result("Peer count", Quantity), Cost: jsonrpc.Light(1), Handler: Constant([]byte(`"0x0"`)),
		},
		jsonrpc.Method{
			Name: "web3_sha3", Summary: "Returns the Keccak-256 hash of some data.",
			Params: []jsonrpc.Param{Required("Data", "What is hashed.", Data, jsonrpc.Given("0x68656c6c6f"))}, Result: Result("Hash", Hash),
			Cost: jsonrpc.Light(1), Handler: sha3,
		},
	)
}

// Constant returns the handler of a method without parameters and with a constant answer.
func Constant(answer []byte) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		if args := parameter.Read(params, 0, 0); args.Err != nil {
			return out, args.Err
		}
		return append(out, answer...), nil
	}
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
