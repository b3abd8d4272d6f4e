package api

import (
	"context"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// parityCall answers trace_call.
func (a *API) parityCall(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 2)
	message, kinds, id := parameter.Decode(&args, 0, parseMessage), traceKinds(&args), args.Block(2)
	if args.Err != nil {
		return out, args.Err
	}
	return a.parityCalls(ctx, id, execute.CallOptions{}, []*tracedMessage{{message, kinds}}, out, func(out []byte, replay func(out []byte, i int) ([]byte, error)) ([]byte, error) {
		return replay(out, 0)
	})
}

// tracedMessage is a call with the requested parts of its trace.
type tracedMessage struct {
	message *execute.Message
	kinds   trace.Kinds
}

// parityCallMany answers trace_callMany: each call runs on the state after the previous
// one.
func (a *API) parityCallMany(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	limited := counted[tracedMessage]{parse: parseTracedMessage, most: maxManyCalls}
	calls, id := parameter.Decode(&args, 0, parseFirst(maxManyCalls, limited.next)), args.Block(1)
	if args.Err != nil {
		return out, args.Err
	}
	if err := limited.check("calls"); err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	return a.parityCalls(ctx, id, execute.CallOptions{}, calls, out, func(out []byte, replay func(out []byte, i int) ([]byte, error)) ([]byte, error) {
		return room.AppendArray(out, len(calls), replay)
	})
}

// parseTracedMessage decodes [call object, [trace types]].
func parseTracedMessage(raw []byte) (*tracedMessage, error) {
	pair := parameter.Read(raw, 2, 2)
	call := &tracedMessage{parameter.Decode(&pair, 0, parseMessage), traceKinds(&pair)}
	return call, pair.Err
}

// parityCalls runs calls at a block. appendAll gets a function that runs the i-th call, and
// must call it for one after the other.
func (a *API) parityCalls(ctx context.Context, id chain.BlockID, options execute.CallOptions, calls []*tracedMessage, out []byte,
	appendAll func(out []byte, replay func(out []byte, i int) ([]byte, error)) ([]byte, error)) ([]byte, error) {
	view, number, err := a.at(ctx, id)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	err = view.TraceCalls(ctx, number, options, func(run func(context.Context, *execute.Message, execute.Tracer) error) (err error) {
		out, err = appendAll(out, func(out []byte, i int) ([]byte, error) {
			replayed, err := calls[i].kinds.Call(ctx, a.chain.Executor().Config(), len(out), room, func(ctx context.Context, tracer execute.Tracer) error {
				return run(ctx, calls[i].message, tracer)
			})
			if err != nil {
				return out, err
			}
			return replayed.Append(out, nil), nil
		})
		return err
	})
	return out, callError(ctx, err, out)
}

// parityRawTransaction answers trace_rawTransaction: it runs a signed transaction after the
// latest block.
func (a *API) parityRawTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	encoded, kinds := args.Bytes(0), traceKinds(&args)
	if args.Err != nil {
		return out, args.Err
	}
	message, err := a.signedMessage(encoded)
	if err != nil {
		return out, jsonrpc.InvalidArgument(0, err.Error())
	}
	id, options := chain.BlockID{Tag: chain.Latest}, execute.CallOptions{Transaction: true}
	return a.parityCalls(ctx, id, options, []*tracedMessage{{message, kinds}}, out,
		func(out []byte, replay func(out []byte, i int) ([]byte, error)) ([]byte, error) {
			return replay(out, 0)
		})
}

// signedMessage returns the message of a signed transaction.
func (a *API) signedMessage(encoded []byte) (*execute.Message, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(encoded); err != nil {
		return nil, err
	}
	m, err := core.TransactionToMessage(tx, types.LatestSigner(a.chain.Executor().Config()), nil) // checks that the numbers fit
	if err != nil {
		return nil, err
	}
	message := &execute.Message{
		From: m.From, To: m.To, Gas: &m.GasLimit, Nonce: &m.Nonce, Data: m.Data, Value: m.Value,
		AccessList: m.AccessList, BlobHashes: m.BlobHashes, Authorizations: m.SetCodeAuthorizations,
	}
	if tx.Type() == types.LegacyTxType || tx.Type() == types.AccessListTxType {
		message.GasPrice = m.GasPrice
	} else {
		message.MaxFeePerGas, message.MaxPriorityFeePerGas = m.GasFeeCap, m.GasTipCap
	}
	if tx.Type() == types.BlobTxType {
		message.MaxFeePerBlobGas = m.BlobGasFeeCap
	}
	return message, nil
}
