package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/crypto"
)

// networkMethods say what network and program this is.
func (a *API) networkMethods() jsonrpc.Handlers {
	chainID := a.chain.Executor().Config().ChainID
	networkID := strconv.FormatUint(a.config.NetworkID, 10)
	if a.config.NetworkID == 0 {
		networkID = chainID.String()
	}
	return jsonrpc.Handlers{
		"eth_chainId":        constant(appendBig(nil, chainID)),
		"eth_syncing":        a.syncing,
		"eth_accounts":       constant([]byte("[]")),
		"eth_blockNumber":    a.blockNumber,
		"net_version":        constant(jsonrpc.AppendString(nil, networkID)),
		"net_listening":      constant([]byte("true")),
		"net_peerCount":      constant([]byte(`"0x0"`)),
		"web3_clientVersion": constant(jsonrpc.AppendString(nil, a.config.ClientVersion)),
		"web3_sha3":          sha3,
	}
}

// constant is a method without parameters whose answer never changes.
func constant(answer []byte) jsonrpc.Handler {
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		if args := readArguments(params, 0, 0); args.err != nil {
			return out, args.err
		}
		return append(out, answer...), nil
	}
}

// modules answers rpc_modules: the namespaces of methods, each with its version.
func modules(methods jsonrpc.Handlers) jsonrpc.Handler {
	names := []string{"rpc"}
	for method := range methods {
		name, _, _ := strings.Cut(method, "_")
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
	return constant(append(answer, '}'))
}

func (a *API) blockNumber(_ context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	return appendQuantity(out, view.Head().Number), nil
}

// sha3 answers web3_sha3: the keccak256 of some bytes.
func sha3(_ context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	data := args.bytes(0)
	if args.err != nil {
		return out, args.err
	}
	return appendHex(out, crypto.Keccak256(data)), nil
}
