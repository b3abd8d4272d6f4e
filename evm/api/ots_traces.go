package api

import (
	"context"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// otsFrame is a frame of callTracer. A creation that failed has the address that it would have had, as in Erigon.
type otsFrame struct {
	Type     string
	From, To common.Address
	Value    *hexutil.Big
	Input    hexutil.Bytes
	Output   hexutil.Bytes
	Error    string
	Calls    []otsFrame
}

// otsTrace returns a handler that traces the calls of a transaction and answers with what
// appendAnswer appends.
func (a *API) otsTrace(appendAnswer func(out []byte, root *otsFrame, room jsonrpc.Room) ([]byte, error)) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		hash := args.Hash(0)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View()
		if err != nil {
			return out, err
		}
		number, index, found, err := a.minedTransaction(ctx, view, hash)
		if err != nil {
			return out, err
		}
		if !found {
			return out, errNoTransaction
		}
		var root *otsFrame
		err = view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) (err error) {
			root, err = a.otsFrames(ctx, r, index, out)
			return err
		})
		if err != nil {
			return out, err
		}
		return appendAnswer(out, root, jsonrpc.RoomFor(ctx, out))
	}
}

// otsFrames traces the calls of a transaction of a replayed block. What it collects must
// have room behind out.
func (a *API) otsFrames(ctx context.Context, r *execute.Replay, index int, out []byte) (*otsFrame, error) {
	r.Expect(index, index+1)
	if err := r.Skip(index); err != nil {
		return nil, err
	}
	calls := trace.CallsNamingAttempts(a.chain.Executor().Config())
	traced, err := calls.AppendTransaction(ctx, r, out, jsonrpc.RoomFor(ctx, out))
	if err != nil {
		return nil, err
	}
	root := new(otsFrame)
	return root, json.Unmarshal(traced[len(out):], root)
}

// each calls visit with the frame and those inside of it, in the order of their beginning.
func (f *otsFrame) each(depth int, visit func(f *otsFrame, depth int) error) error {
	if err := visit(f, depth); err != nil {
		return err
	}
	for i := range f.Calls {
		if err := f.Calls[i].each(depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (f *otsFrame) value() *big.Int {
	if f.Value == nil {
		return new(big.Int)
	}
	return f.Value.ToInt()
}

// appendOperations appends the transfers, creations and self-destructions.
func appendOperations(out []byte, root *otsFrame, room jsonrpc.Room) ([]byte, error) {
	kinds := map[string]uint64{"SELFDESTRUCT": 1, "CREATE": 2, "CREATE2": 3}
	list := jsonrpc.NewList(append(out, '['), room)
	err := root.each(0, func(f *otsFrame, depth int) error {
		kind, special := kinds[f.Type]
		if depth == 0 || !special && (f.Type != "CALL" || f.value().Sign() == 0) {
			return nil
		}
		entry := append(append(list.Next(), `{"type":`...), byte('0'+kind))
		entry = appendHex(append(entry, `,"from":`...), f.From[:])
		entry = appendHex(append(entry, `,"to":`...), f.To[:])
		return list.Add(append(appendBig(append(entry, `,"value":`...), f.value()), '}'))
	})
	return append(list.Bytes(), ']'), err
}

// appendOtsCalls appends all frames with their depth. Calls that pass no value on have none.
func appendOtsCalls(out []byte, root *otsFrame, room jsonrpc.Room) ([]byte, error) {
	list := jsonrpc.NewList(append(out, '['), room)
	err := root.each(0, func(f *otsFrame, depth int) error {
		entry := jsonrpc.AppendString(append(list.Next(), `{"type":`...), f.Type)
		entry = strconv.AppendInt(append(entry, `,"depth":`...), int64(depth), 10)
		entry = appendHex(append(entry, `,"from":`...), f.From[:])
		entry = appendHex(append(entry, `,"to":`...), f.To[:])
		entry = append(entry, `,"value":`...)
		if f.Type == "STATICCALL" || f.Type == "DELEGATECALL" {
			entry = appendNull(entry)
		} else {
			entry = appendBig(entry, f.value())
		}
		entry = appendHex(append(entry, `,"input":`...), f.Input)
		return list.Add(append(appendHex(append(entry, `,"output":`...), f.Output), '}'))
	})
	return append(list.Bytes(), ']'), err
}

// appendOtsError appends what a reverted transaction returned; nothing for others.
func appendOtsError(out []byte, root *otsFrame, _ jsonrpc.Room) ([]byte, error) {
	if !strings.Contains(root.Error, "revert") {
		return appendHex(out, nil), nil
	}
	return appendHex(out, root.Output), nil
}
