package api

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"

	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/holiman/uint256"
)

// feeMethods describes the methods about the price of gas.
func (a *API) feeMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_gasPrice", eth.Own{Handler: a.gasPrice}),
		d.Method("eth_maxPriorityFeePerGas", eth.Own{Handler: a.maxPriorityFeePerGas}),
		d.Method("eth_blobBaseFee", eth.Own{Handler: a.blobBaseFee}),
		{
			Name: "eth_baseFee", Summary: "Returns the base fee of the block after the head, null before London.",
			Result: eth.Result("Base fee", eth.QuantityOrNull), Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.baseFee,
		},
		d.Method("eth_feeHistory", eth.Own{
			Handler: a.feeHistory, Cost: jsonrpc.Heavy(20), Result: feeHistorySchema,
			Errors: append(errorsOf(query.ErrBeyondHead, query.ErrPercentile), namedBlockErrors...),
		}),
	}
}

// suggestTip suggests a tip for the block after the current head, and returns the view it
// used.
func (a *API) suggestTip(ctx context.Context, params []byte) (*query.View, *big.Int, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return nil, nil, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return nil, nil, err
	}
	tip, err := a.tips.Suggest(ctx, view)
	return view, tip, err
}

// gasPrice answers eth_gasPrice: the suggested tip plus the head's base fee.
func (a *API) gasPrice(ctx context.Context, params, out []byte) ([]byte, error) {
	view, price, err := a.suggestTip(ctx, params)
	if err != nil {
		return out, err
	}
	header, err := view.Header(ctx, view.Head().Number)
	if err != nil {
		return out, err
	}
	if header.BaseFee != nil {
		price.Add(price, header.BaseFee)
	}
	return appendBig(out, price), nil
}

// maxPriorityFeePerGas answers eth_maxPriorityFeePerGas.
func (a *API) maxPriorityFeePerGas(ctx context.Context, params, out []byte) ([]byte, error) {
	_, tip, err := a.suggestTip(ctx, params)
	if err != nil {
		return out, err
	}
	return appendBig(out, tip), nil
}

// baseFee answers eth_baseFee: the base fee of the block after the head.
func (a *API) baseFee(ctx context.Context, params, out []byte) ([]byte, error) {
	header, err := a.head(ctx, params)
	if err != nil {
		return out, err
	}
	return appendOptionalBig(out, query.NextBaseFee(a.chain.Executor().Config(), header.Header)), nil
}

// blobBaseFee answers eth_blobBaseFee for the head.
func (a *API) blobBaseFee(ctx context.Context, params, out []byte) ([]byte, error) {
	header, err := a.head(ctx, params)
	if err != nil {
		return out, err
	}
	return appendOptionalBig(out, query.BlobBaseFee(a.chain.Executor().Config(), header.Header)), nil
}

func appendOptionalBig(out []byte, value *big.Int) []byte {
	if value == nil {
		return appendNull(out)
	}
	return appendBig(out, value)
}

// feeHistory answers eth_feeHistory.
func (a *API) feeHistory(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 2)
	blocks, last := parameter.Decode(&args, 0, parameter.ParseCount), args.BlockNumber(1)
	var percentiles []float64
	if args.Given(2) {
		percentiles = parameter.Decode(&args, 2, parsePercentiles)
	}
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	history, err := view.FeeHistory(ctx, blocks, last, percentiles)
	if err != nil {
		return out, err
	}
	return appendFeeHistory(out, history, jsonrpc.RoomFor(ctx, out))
}

func appendFeeHistory(out []byte, h *query.FeeHistory, room jsonrpc.Room) ([]byte, error) {
	out = append(out, `{"oldestBlock":`...)
	out = appendQuantity(out, h.Oldest)
	if len(h.GasUsedRatios) == 0 {
		return append(out, `,"gasUsedRatio":null}`...), nil
	}
	if h.Rewards != nil {
		var err error
		out, err = room.AppendArray(append(out, `,"reward":`...), len(h.Rewards), func(out []byte, i int) ([]byte, error) {
			return jsonrpc.AppendArray(out, h.Rewards[i], func(out []byte, reward uint256.Int) []byte {
				return appendUint256(out, &reward)
			}), nil
		})
		if err != nil {
			return out, err
		}
	}
	out = jsonrpc.AppendArray(append(out, `,"baseFeePerGas":`...), h.BaseFees, appendBig)
	out = jsonrpc.AppendArray(append(out, `,"gasUsedRatio":`...), h.GasUsedRatios, appendFloat)
	out = jsonrpc.AppendArray(append(out, `,"baseFeePerBlobGas":`...), h.BlobBaseFees, appendBig)
	out = jsonrpc.AppendArray(append(out, `,"blobGasUsedRatio":`...), h.BlobGasUsedRatios, appendFloat)
	return append(out, '}'), nil
}

// appendFloat appends a finite number with the fewest digits that identify it, in the
// format of encoding/json (and so geth): with an exponent only if it is very small, and
// without leading zeros in the exponent.
func appendFloat(out []byte, value float64) []byte {
	if value == 0 || value >= 1e-6 {
		return strconv.AppendFloat(out, value, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, value, 'e', -1, 64)
	if n := len(out); n >= 4 && out[n-4] == 'e' && out[n-3] == '-' && out[n-2] == '0' {
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	return out
}

// parsePercentiles decodes an array of numbers.
func parsePercentiles(raw []byte) ([]float64, error) {
	var percentiles []float64
	if err := json.Unmarshal(raw, &percentiles); err != nil {
		return nil, errors.New("want an array of numbers")
	}
	return percentiles, nil
}
