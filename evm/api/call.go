package api

import (
	"context"
	"encoding/hex"
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// callMethods describes the methods that run a message.
func (a *API) callMethods(d *eth.Description) []jsonrpc.Method {
	errs := append([]*jsonrpc.Error{
		{Code: jsonrpc.CodeReverted, Message: "execution reverted", Data: "the returned data, in hexadecimal"},
		{Code: jsonrpc.CodeServer, Message: "out of gas"},
		{Code: jsonrpc.CodeServer, Message: "execution aborted (timeout = 5s)"},
	}, blockErrors...)
	called := parameter.Concerning(contractsCalled)
	return []jsonrpc.Method{
		d.Method("eth_call", eth.Own{Handler: a.running(4, runCall), Cost: jsonrpc.Heavy(20), Concerns: called, Errors: errs}),
		d.Method("eth_estimateGas", eth.Own{Handler: a.running(4, runGasEstimate), Cost: jsonrpc.Heavy(50), Concerns: called, Errors: errs}),
		d.Method("eth_createAccessList", eth.Own{Handler: a.running(3, runAccessList), Cost: jsonrpc.Heavy(50), Concerns: called, Errors: errs}),
	}
}

// callQuestion is the parameters of methods that run a message.
type callQuestion struct {
	message *execute.Message
	block   chain.BlockID
	options execute.CallOptions
}

// readCall decodes a call object, a block and state overrides, of which only the first is
// required.
func readCall(args *parameter.Arguments) callQuestion {
	question := callQuestion{message: parameter.Decode(args, 0, parseMessage), block: args.Block(1)}
	if args.Given(2) {
		question.options.State = parameter.Decode(args, 2, parseStateOverrides)
	}
	if args.Given(3) {
		question.options.Block = parameter.Decode(args, 3, parseBlockOverrides)
	}
	return question
}

// runAnswer runs a message at a block of a view, and appends the result.
type runAnswer func(ctx context.Context, view *query.View, number uint64, question *callQuestion, out []byte) ([]byte, error)

// running returns the handler of a method that runs a message and takes at most most
// parameters.
func (a *API) running(most int, run runAnswer) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, most, 1)
		question := readCall(&args)
		if args.Err != nil {
			return out, args.Err
		}
		view, number, err := a.at(ctx, question.block)
		if err != nil {
			return out, err
		}
		answer, err := run(ctx, view, number, &question, out)
		if err != nil {
			return out, callError(ctx, err, out)
		}
		return answer, nil
	}
}

func runCall(ctx context.Context, view *query.View, number uint64, question *callQuestion, out []byte) ([]byte, error) {
	output, err := view.Call(ctx, number, question.message, question.options)
	return appendHex(out, output), err
}

func runGasEstimate(ctx context.Context, view *query.View, number uint64, question *callQuestion, out []byte) ([]byte, error) {
	gas, err := view.EstimateGas(ctx, number, question.message, question.options)
	return appendQuantity(out, gas), err
}

func runAccessList(ctx context.Context, view *query.View, number uint64, question *callQuestion, out []byte) ([]byte, error) {
	accessed, err := view.AccessList(ctx, number, question.message, question.options)
	if err != nil {
		return out, err
	}
	return appendAccessed(out, accessed, jsonrpc.RoomFor(ctx, out))
}

func appendAccessed(out []byte, accessed *execute.Accessed, room jsonrpc.Room) ([]byte, error) {
	out, err := room.AppendArray(append(out, `{"accessList":`...), len(accessed.List), func(out []byte, i int) ([]byte, error) {
		tuple := &accessed.List[i]
		out = appendHex(append(out, `{"address":`...), tuple.Address[:])
		out = jsonrpc.AppendArray(append(out, `,"storageKeys":`...), tuple.StorageKeys, appendHash)
		return append(out, '}'), nil
	})
	if err != nil {
		return out, err
	}
	if accessed.Err != nil {
		out = jsonrpc.AppendString(append(out, `,"error":`...), accessed.Err.Error())
	}
	out = appendQuantity(append(out, `,"gasUsed":`...), accessed.GasUsed)
	return append(out, '}'), nil
}

// callError returns the error for a call that was not run, or failed. The data of a revert
// must fit into the answer, like a result.
func callError(ctx context.Context, err error, out []byte) error {
	var reverted *execute.RevertError
	var failed *execute.CallError
	switch {
	case errors.As(err, &reverted):
		if err := jsonrpc.RoomFor(ctx, out).Check(len(out) + hex.EncodedLen(len(reverted.Data))); err != nil {
			return err
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: reverted.Error(), Data: hexutil.Encode(reverted.Data)}
	case errors.As(err, &failed):
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: failed.Error()}
	}
	return err
}
