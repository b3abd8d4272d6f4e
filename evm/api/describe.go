package api

import (
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// parameters describes the parameters shared by several methods. All are required; see
// optional. Their names are those of the execution API's specification.
type parameters struct {
	address         jsonrpc.Param
	block           jsonrpc.Param // any block parameter; the example is a block with a transaction
	state           jsonrpc.Param // the same; the example is the latest block
	blockHash       jsonrpc.Param
	blockNumber     jsonrpc.Param // a number or a tag
	hydrated        jsonrpc.Param
	transactionHash jsonrpc.Param
	index           jsonrpc.Param // of a transaction
	filter          jsonrpc.Param
	call            jsonrpc.Param
	callBlock       jsonrpc.Param // a block after which the example of call succeeds
	stateOverrides  jsonrpc.Param
	slot            jsonrpc.Param
}

// parameters returns the descriptions with examples of this network's data.
func (a *API) parameters() parameters {
	return parameters{
		address:         required("Address", "The account.", addressSchema, a.example(func(s *sample) any { return s.contract })),
		block:           required("Block", "The block.", blockSchema, a.example(func(s *sample) any { return s.number() })),
		state:           required("Block", "The block after which the state is read; latest by default.", blockSchema, jsonrpc.Given("latest")),
		blockHash:       required("Block hash", "The hash of the block.", hashSchema, a.example(func(s *sample) any { return s.block.Hash })),
		blockNumber:     required("Block", "The number or tag of the block.", blockNumberSchema, a.example(func(s *sample) any { return s.number() })),
		hydrated:        required("Hydrated transactions", "Whether transactions are returned whole, not as hashes.", schema.Boolean, jsonrpc.Given(false)),
		transactionHash: required("Transaction hash", "The hash of the transaction.", hashSchema, a.example(func(s *sample) any { return s.transaction })),
		index:           required("Transaction index", "The transaction's place in the block, from 0.", numberSchema, a.example(func(s *sample) any { return hexutil.Uint64(s.index) })),
		filter:          required("Filter", "Which logs are returned.", filterSchema, a.example((*sample).filter)),
		call:            required("Transaction", "The message to run.", callSchema, a.example(func(s *sample) any { return s.call })),
		callBlock:       required("Block", "The block after which the message runs; latest by default.", blockSchema, a.example(func(s *sample) any { return hexutil.Uint64(s.callBlock) })),
		stateOverrides:  jsonrpc.Param{Name: "State overrides", Summary: "What the message sees of accounts in place of their contents.", Schema: stateOverridesSchema},
		slot:            required("Storage slot", "The key of the slot.", slotSchema, jsonrpc.Given("0x0")),
	}
}

func required(name, summary string, s *schema.Schema, example func(context.Context) (any, error)) jsonrpc.Param {
	return jsonrpc.Param{Name: name, Summary: summary, Schema: s, Required: true, Example: example}
}

// optional returns a copy of a parameter that may be omitted.
func optional(p jsonrpc.Param) jsonrpc.Param {
	p.Required = false
	return p
}

// filterID describes a parameter that is the result of another method.
func filterID(from string) jsonrpc.Param {
	return jsonrpc.Param{Name: "Filter identifier", Summary: "The identifier that " + from + " returned.", Schema: idSchema, Required: true, From: from}
}

// errorsOf returns the errors that clients receive for some kinds of errors.
func errorsOf(kinds ...error) (documented []*jsonrpc.Error) {
	for _, kind := range kinds {
		var known *jsonrpc.Error
		if errors.As(translate(kind), &known) {
			documented = append(documented, known)
		}
	}
	return documented
}

// The errors of methods with a block parameter: namedBlockErrors if a missing block is
// answered with null, blockErrors if it is an error.
var (
	namedBlockErrors = errorsOf(query.ErrNoSafe, query.ErrNoFinalized, query.ErrNotCanonical)
	blockErrors      = append(errorsOf(query.ErrUnknownBlock, query.ErrUnknownHash, evm.ErrMissing), namedBlockErrors...)
	// existingErrors take the place of blockErrors in methods that find the block with [API.existing].
	existingErrors = append(errorsOf(noBlock(chain.BlockID{Number: 9}), noBlock(chain.BlockID{Hash: new(common.Hash)}), evm.ErrMissing), namedBlockErrors...)
)

// result describes a result.
func result(name string, s *schema.Schema) jsonrpc.Result {
	return jsonrpc.Result{Name: name, Schema: s}
}
