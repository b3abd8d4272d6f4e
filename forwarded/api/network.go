package api

import (
	"context"
	"slices"
	"strconv"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// chainMethods describes the methods about the chain, which wait until a node has named it, or its head.
func (a *API) chainMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_chainId", eth.Own{Handler: a.identified(appendQuantity)}),
		d.Method("eth_blockNumber", eth.Own{Handler: a.blockNumber()}),
		d.Method("net_version", eth.Own{Handler: a.identified(func(out []byte, id uint64) []byte {
			return jsonrpc.AppendString(out, strconv.FormatUint(id, 10))
		})}),
	}
}

// ownMethods describes the methods that are answered without a node.
func (a *API) ownMethods(d *eth.Description) []jsonrpc.Method {
	return append(d.Alike(),
		jsonrpc.Method{
			Name: "eth_syncing", Summary: "Returns false: the network is at the head of its nodes.", Result: eth.Result("Syncing status", schema.Boolean),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: eth.Constant([]byte("false")),
		},
		d.Method("web3_clientVersion", eth.Own{Handler: eth.Constant(jsonrpc.AppendString(nil, a.config.ClientVersion))}),
	)
}

// identified returns the handler of a method without parameters that appends the chain's ID in a form.
func (a *API) identified(form func(out []byte, id uint64) []byte) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		if args := parameter.Read(params, 0, 0); args.Err != nil {
			return out, args.Err
		}
		id, err := a.chainID(ctx)
		if err != nil {
			return out, err
		}
		return form(out, id), nil
	}
}

// blockNumber returns the handler of eth_blockNumber.
func (a *API) blockNumber() jsonrpc.Handler {
	return asOfNow(a, 0, 0, noArgument, func(_ context.Context, c *call[struct{}], out []byte) ([]byte, error) {
		return appendQuantity(out, c.view.Head().Number), nil
	})
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

// allowedMethods describes the methods of the configuration's allow list, except for those
// that are described already. What they take and return is known to the nodes alone.
func (a *API) allowedMethods(described []jsonrpc.Method) (all []jsonrpc.Method) {
	for _, name := range a.config.Allowed {
		if slices.ContainsFunc(described, func(m jsonrpc.Method) bool { return m.Name == name }) {
			continue
		}
		all = append(all, jsonrpc.Method{
			Name: name, Summary: "Is passed to a node as it is.", Result: eth.Result("Result", nodesResult), Cost: credits(name), Concerns: jsonrpc.AnyContract,
			Params: []jsonrpc.Param{{Name: "Parameters", Summary: "As the nodes of the chain describe them.", Schema: schema.Any}},
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
