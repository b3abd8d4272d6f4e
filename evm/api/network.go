package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// networkMethods describes the methods about the network and the program.
func (a *API) networkMethods(d *eth.Description) []jsonrpc.Method {
	chainID := a.chain.Executor().Config().ChainID
	networkID := strconv.FormatUint(a.config.NetworkID, 10)
	if a.config.NetworkID == 0 {
		networkID = chainID.String()
	}
	return append(d.Alike(),
		d.Method("eth_chainId", eth.Own{Handler: eth.Constant(appendBig(nil, chainID))}),
		d.Method("eth_blockNumber", eth.Own{Handler: a.blockNumber}),
		jsonrpc.Method{
			Name: "eth_syncing", Summary: "Returns how far the network is behind the head that it follows, false where it is not.",
			Result: eth.Result("Syncing status", schema.AnyOf(schema.Boolean, syncSchema)),
			Cost:   jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: a.syncing,
		},
		d.Method("net_version", eth.Own{Handler: eth.Constant(jsonrpc.AppendString(nil, networkID))}),
		d.Method("web3_clientVersion", eth.Own{Handler: eth.Constant(jsonrpc.AppendString(nil, a.config.ClientVersion))}),
	)
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
		Result: eth.Result("Modules", schema.Map(schema.String)),
		Cost:   jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: eth.Constant(append(answer, '}')),
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
