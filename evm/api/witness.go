package api

import (
	"context"
	"encoding/json"
	"fmt"

	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// witnessMethods describes the method that returns what a block needs to be executed.
func (a *API) witnessMethods(p parameters) []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "debug_executionWitness", Summary: "Returns the headers, codes and trie nodes with which a block can be executed without a state.",
		Params: []jsonrpc.Param{p.block}, Result: result("Witness", witnessSchema), Errors: append(errorsOf(execute.ErrGenesis), blockErrors...),
		Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.executionWitness,
	}}
}

var witnessSchema = schema.Object(schema.Members{
	"headers": schema.Array(schema.Object(nil, nil)), "codes": schema.Array(dataSchema), "state": schema.Array(dataSchema), "keys": schema.Null,
}, nil).Named("Witness", "What a block needs to be executed: headers of ancestors, codes, and nodes of tries. Keys are null, as in geth.")

// executionWitness answers debug_executionWitness, in geth's form.
func (a *API) executionWitness(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	id := args.block(0)
	if args.err != nil {
		return out, args.err
	}
	view, number, err := a.at(ctx, id)
	if err != nil {
		return out, err
	}
	witness, err := view.Witness(ctx, number)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	out, err = room.AppendArray(append(out, `{"headers":`...), len(witness.Headers), func(out []byte, i int) ([]byte, error) {
		encoded, err := json.Marshal(witness.Headers[i])
		if err != nil {
			return out, fmt.Errorf("encode header %d: %w", witness.Headers[i].Number, err)
		}
		return append(out, encoded...), nil
	})
	for _, part := range []struct {
		name string
		list [][]byte
	}{{"codes", witness.Codes}, {"state", witness.Nodes}} {
		if err != nil {
			return out, err
		}
		out = append(jsonrpc.AppendString(append(out, ','), part.name), ':')
		out, err = room.AppendArray(out, len(part.list), func(out []byte, i int) ([]byte, error) { return appendHex(out, part.list[i]), nil })
	}
	return append(out, `,"keys":null}`...), err
}
