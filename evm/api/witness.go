package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// witnessMethods describes the methods that return what a block needs to be executed.
func (a *API) witnessMethods(d *eth.Description) []jsonrpc.Method {
	mode := jsonrpc.Param{Name: "Mode", Summary: "The form of the witness.", Schema: schema.Enum(string(rethWitness), string(canonicalWitness))}
	errs := append(errorsOf(execute.ErrGenesis), blockErrors...)
	return []jsonrpc.Method{
		{
			Name: "debug_executionWitness", Summary: "Returns the headers, codes and trie nodes with which a block can be executed without a state, in geth's form by default.",
			Params: []jsonrpc.Param{d.Block, mode}, Result: eth.Result("Witness", witnessSchema), Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.executionWitness((*parameter.Arguments).Block, gethWitness),
		},
		{
			Name: "debug_executionWitnessByBlockHash", Summary: "Returns the headers, codes and trie nodes with which a block can be executed without a state, in reth's form by default.",
			Params: []jsonrpc.Param{d.BlockHash, mode}, Result: eth.Result("Witness", witnessSchema), Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.executionWitness((*parameter.Arguments).BlockHash, rethWitness),
		},
	}
}

var witnessSchema = schema.Object(schema.Members{
	"headers": schema.Array(schema.AnyOf(schema.Object(nil, nil), eth.Data)), "codes": schema.Array(eth.Data), "state": schema.Array(eth.Data),
	"keys": schema.OrNull(schema.Array(eth.Data)),
}, nil).Named("Witness", "What a block needs to be executed: headers of ancestors, codes, nodes of tries, and keys of accounts and slots.")

// witnessForm is the form of a witness. The names are reth's.
type witnessForm string

const (
	// gethWitness has headers as objects, and no keys.
	gethWitness witnessForm = ""
	// rethWitness has encoded headers, keys, and the codes that the block created.
	rethWitness witnessForm = "legacy"
	// canonicalWitness is what the execution-specs draft: encoded headers, keys, and only
	// the codes that were read.
	canonicalWitness witnessForm = "canonical"
)

// parseWitnessForm decodes a mode.
func parseWitnessForm(raw []byte) (witnessForm, error) {
	text, ok := jsonrpc.String(raw)
	if form := witnessForm(text); ok && (form == rethWitness || form == canonicalWitness) {
		return form, nil
	}
	return "", errors.New("unknown mode (want legacy or canonical)")
}

// executionWitness returns the handler that answers with a witness, in a form unless the
// call asks for another.
func (a *API) executionWitness(which blockArgument, form witnessForm) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 2, 1)
		id, form := which(&args, 0), form
		if args.Given(1) {
			form = parameter.Decode(&args, 1, parseWitnessForm)
		}
		if args.Err != nil {
			return out, args.Err
		}
		view, number, err := a.at(ctx, id)
		if err == nil && view.IsPending(number) {
			err = query.ErrUnknownBlock // the next execution of it may differ
		}
		if err != nil {
			return out, err
		}
		witness, err := view.Witness(ctx, number)
		if err != nil {
			return out, err
		}
		return appendWitness(out, witness, form, jsonrpc.RoomFor(ctx, out))
	}
}

// appendWitness appends a witness in a form.
func appendWitness(out []byte, w *execute.Witness, form witnessForm, room jsonrpc.Room) ([]byte, error) {
	out, err := room.AppendArray(append(out, `{"headers":`...), len(w.Headers), func(out []byte, i int) ([]byte, error) {
		return appendWitnessHeader(out, w.Headers[i], form)
	})
	type part struct {
		name string
		list [][]byte
	}
	codes := part{"codes", w.Codes}
	if form == rethWitness {
		codes.list = w.AllCodes()
	}
	parts := []part{codes, {"state", w.Nodes}}
	if form != gethWitness {
		parts = append(parts, part{"keys", w.Keys})
	}
	for _, part := range parts {
		if err != nil {
			return out, err
		}
		out = append(jsonrpc.AppendString(append(out, ','), part.name), ':')
		out, err = room.AppendArray(out, len(part.list), func(out []byte, i int) ([]byte, error) { return appendHex(out, part.list[i]), nil })
	}
	if form == gethWitness {
		out = append(out, `,"keys":null`...)
	}
	return append(out, '}'), err
}

// appendWitnessHeader appends a header as an object or encoded.
func appendWitnessHeader(out []byte, header *types.Header, form witnessForm) ([]byte, error) {
	if form == gethWitness {
		object, err := json.Marshal(header)
		if err != nil {
			return out, fmt.Errorf("encode header %d: %w", header.Number, err)
		}
		return append(out, object...), nil
	}
	encoded, err := rlp.EncodeToBytes(header)
	return appendHex(out, encoded), err
}
