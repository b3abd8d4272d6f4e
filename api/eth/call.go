package eth

import (
	"context"
	"errors"

	"ashlar/execute"
	"ashlar/jsonrpc"
	"ashlar/query"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// callMethods are the methods that run something.
func (a *API) callMethods() jsonrpc.Methods {
	return jsonrpc.Methods{
		"eth_call":             a.call,
		"eth_estimateGas":      a.estimateGas,
		"eth_createAccessList": a.createAccessList,
	}
}

// callQuestion is what the methods that run something are asked.
type callQuestion struct {
	message *execute.Message
	block   query.BlockID
	options execute.CallOptions
}

// callQuestion decodes a call object, a block and overrides of the state, of
// which only the first must be given.
func (a *arguments) callQuestion() callQuestion {
	question := callQuestion{message: argument(a, 0, parseMessage), block: a.block(1)}
	if a.given(2) {
		question.options.State = argument(a, 2, parseStateOverrides)
	}
	if a.given(3) {
		question.options.Block = argument(a, 3, parseBlockOverrides)
	}
	return question
}

func (a *API) call(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 4, 1)
	question := args.callQuestion()
	if args.err != nil {
		return out, args.err
	}
	view, number, err := a.at(ctx, question.block)
	if err != nil {
		return out, err
	}
	output, err := view.Call(ctx, number, question.message, question.options)
	if err != nil {
		return out, callError(err)
	}
	return appendHex(out, output), nil
}

func (a *API) estimateGas(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 4, 1)
	question := args.callQuestion()
	if args.err != nil {
		return out, args.err
	}
	view, number, err := a.at(ctx, question.block)
	if err != nil {
		return out, err
	}
	gas, err := view.EstimateGas(ctx, number, question.message, question.options)
	if err != nil {
		return out, callError(err)
	}
	return appendQuantity(out, gas), nil
}

func (a *API) createAccessList(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 3, 1)
	question := args.callQuestion()
	if args.err != nil {
		return out, args.err
	}
	view, number, err := a.at(ctx, question.block)
	if err != nil {
		return out, err
	}
	accessed, err := view.AccessList(ctx, number, question.message, question.options)
	if err != nil {
		return out, callError(err)
	}
	return appendAccessed(out, accessed), nil
}

func appendAccessed(out []byte, accessed *execute.Accessed) []byte {
	out = append(out, `{"accessList":[`...)
	for i, tuple := range accessed.List {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"address":`...)
		out = appendHex(out, tuple.Address[:])
		out = append(appendMember(out, "storageKeys"), '[')
		for j := range tuple.StorageKeys {
			if j > 0 {
				out = append(out, ',')
			}
			out = appendHex(out, tuple.StorageKeys[j][:])
		}
		out = append(out, ']', '}')
	}
	out = append(out, ']')
	if accessed.Err != nil {
		out = jsonrpc.AppendString(appendMember(out, "error"), accessed.Err.Error())
	}
	out = appendQuantity(appendMember(out, "gasUsed"), accessed.GasUsed)
	return append(out, '}')
}

// callError is the answer for a call that was not run, or failed.
func callError(err error) error {
	var reverted *execute.RevertError
	var failed *execute.CallError
	switch {
	case errors.As(err, &reverted):
		return &jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: reverted.Error(), Data: hexutil.Encode(reverted.Data)}
	case errors.As(err, &failed):
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: failed.Error()}
	}
	return err
}
