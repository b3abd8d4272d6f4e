package api

import (
	"context"

	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// The schemas are looser than those of a network that is executed: chains add members of
// their own to blocks, transactions and receipts.
var (
	quantity    = schema.Text("Quantity", "A number in hexadecimal without leading zeros.", "0x(0|[1-9a-fA-F][0-9a-fA-F]*)")
	data        = schema.Text("Data", "Bytes in hexadecimal.", "0x([0-9a-fA-F]{2})*")
	hash        = schema.Text("Hash", "32 bytes in hexadecimal.", "0x[0-9a-fA-F]{64}")
	address     = schema.Text("Address", "The 20 bytes of an address in hexadecimal.", "0x[0-9a-fA-F]{40}")
	slot        = schema.Text("Slot", "The key of a storage slot: at most 32 bytes in hexadecimal, of any length.", "(0x)?[0-9a-fA-F]{0,64}")
	tag         = schema.Enum("latest", "earliest", "pending", "safe", "finalized").Named("BlockTag", "A block by its place in the chain.")
	blockNumber = schema.AnyOf(quantity, tag).Named("BlockNumberOrTag", "A block by its number or its tag.")
	block       = schema.AnyOf(quantity, tag, hash,
		schema.Object(schema.Members{"blockNumber": blockNumber}, nil),
		schema.Object(schema.Members{"blockHash": hash}, schema.Members{"requireCanonical": schema.Boolean}),
	).Named("BlockNumberOrTagOrHash", "A block by its number, its tag or its hash, or by an object as in EIP-1898.")
	filter = schema.Object(nil, schema.Members{
		"fromBlock": blockNumber, "toBlock": blockNumber, "blockHash": hash,
		"address": schema.AnyOf(address, schema.Array(address), schema.Null),
		"topics":  schema.Array(schema.AnyOf(hash, schema.Array(schema.OrNull(hash)), schema.Null)),
	}).Named("Filter", "Which logs are wanted: those of some blocks, addresses and topics.")

	// object is whatever the chain's nodes return.
	object = &schema.Schema{}
)

// parameters describes the parameters shared by several methods.
type parameters struct {
	address, block, state, blockHash, blockNumber, whole, transactionHash, index, filter, call jsonrpc.Param
}

func (a *API) parameters() parameters {
	return parameters{
		address:         required("Address", "The account.", address, a.example(func(s *sample) any { return s.address })),
		block:           required("Block", "The block.", block, a.example(func(s *sample) any { return s.number() })),
		state:           optional("Block", "The block after which the state is read; latest by default.", block, jsonrpc.Given("latest")),
		blockHash:       required("Block hash", "The hash of the block.", hash, a.example(func(s *sample) any { return s.hash })),
		blockNumber:     required("Block", "The number or tag of the block.", blockNumber, a.example(func(s *sample) any { return s.number() })),
		whole:           required("Hydrated transactions", "Whether transactions are returned whole, not as hashes.", schema.Boolean, jsonrpc.Given(false)),
		transactionHash: required("Transaction hash", "The hash of the transaction.", hash, a.example(func(s *sample) any { return s.transaction })),
		index:           required("Transaction index", "The transaction's place in the block, from 0.", quantity, jsonrpc.Given("0x0")),
		filter:          required("Filter", "Which logs are returned.", filter, a.example((*sample).filter)),
		call:            required("Transaction", "The message to run.", schema.Object(nil, nil), a.example(func(s *sample) any { return map[string]any{"to": s.address} })),
	}
}

func required(name, summary string, s *schema.Schema, example func(context.Context) (any, error)) jsonrpc.Param {
	return jsonrpc.Param{Name: name, Summary: summary, Schema: s, Required: true, Example: example}
}

func optional(name, summary string, s *schema.Schema, example func(context.Context) (any, error)) jsonrpc.Param {
	return jsonrpc.Param{Name: name, Summary: summary, Schema: s, Example: example}
}

func result(name string, s *schema.Schema) jsonrpc.Result {
	return jsonrpc.Result{Name: name, Schema: s}
}

// sample is example data from the network.
type sample struct {
	block       uint64
	hash        common.Hash
	transaction common.Hash    // zero if the newest blocks have none
	address     common.Address // sender of a block's transactions, or its beneficiary
}

func (s *sample) number() any { return hexutil.Uint64(s.block) }

func (s *sample) filter() any {
	return map[string]any{"fromBlock": s.number(), "toBlock": s.number()}
}

// example returns an example function that picks a value from the network's sample.
func (a *API) example(pick func(*sample) any) func(context.Context) (any, error) {
	return a.samples.Example(a.findSample, pick)
}

// findSample takes the newest block with a transaction, of those that are at hand.
func (a *API) findSample(ctx context.Context) (*sample, error) {
	view, err := a.chain.View(ctx)
	if err != nil {
		return nil, err
	}
	s := new(sample)
	for _, b := range view.Blocks() {
		contents, err := query.Contents(b)
		if err != nil {
			return nil, err
		}
		if len(contents.Transactions) > 0 || s.transaction == (common.Hash{}) {
			s.block, s.hash, s.address = b.Number, b.Hash, contents.Miner
			if len(contents.Transactions) > 0 {
				s.transaction = contents.Transactions[0]
			}
		}
	}
	return s, nil
}
