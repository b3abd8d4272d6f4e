package eth

import (
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// Examples returns examples of values on one network.
type Examples struct {
	Address        Example // of an account with data
	Block          Example // the number of a block, with a transaction if there is one
	BlockHash      Example // of the same block
	Transaction    Example // the hash of a transaction
	Index          Example // the transaction's place in the block
	RawTransaction Example
	Filter         Example // for logs of the block
	Watched        Example // a filter for new logs
	Call           Example // a message that succeeds
	CallBlock      Example // the number of a block after which it succeeds
	Simulation     Example
}

// Parameters describes the parameters that several methods share. All but those of overrides are required;
// see [Optional].
type Parameters struct {
	Address         jsonrpc.Param
	Block           jsonrpc.Param // any block parameter; the example is a block with a transaction
	State           jsonrpc.Param // the same; the example is the latest block
	BlockHash       jsonrpc.Param
	BlockNumber     jsonrpc.Param // a number or a tag
	Hydrated        jsonrpc.Param
	TransactionHash jsonrpc.Param
	Index           jsonrpc.Param // of a transaction
	Filter          jsonrpc.Param
	Call            jsonrpc.Param
	CallBlock       jsonrpc.Param // a block after which the example of Call succeeds
	StateOverrides  jsonrpc.Param
	BlockOverrides  jsonrpc.Param
	Slot            jsonrpc.Param
}

func describeParameters(e *Examples) Parameters {
	return Parameters{
		Address:         Required("Address", "The account.", Address, e.Address),
		Block:           Required("Block", "The block.", Block, e.Block),
		State:           Required("Block", "The block after which the state is read; latest by default.", Block, jsonrpc.Given("latest")),
		BlockHash:       Required("Block hash", "The hash of the block.", Hash, e.BlockHash),
		BlockNumber:     Required("Block", "The number or tag of the block.", BlockNumber, e.Block),
		Hydrated:        Required("Hydrated transactions", "Whether transactions are returned whole, not as hashes.", schema.Boolean, jsonrpc.Given(false)),
		TransactionHash: Required("Transaction hash", "The hash of the transaction.", Hash, e.Transaction),
		Index:           Required("Transaction index", "The transaction's place in the block, from 0.", Number, e.Index),
		Filter:          Required("Filter", "Which logs are returned.", Filter, e.Filter),
		Call:            Required("Transaction", "The message to run.", Call, e.Call),
		CallBlock:       Required("Block", "The block after which the message runs; latest by default.", Block, e.CallBlock),
		StateOverrides:  jsonrpc.Param{Name: "State overrides", Summary: "What the message sees of accounts in place of their contents.", Schema: StateOverrides},
		BlockOverrides:  jsonrpc.Param{Name: "Block overrides", Summary: "What the message sees of the block in place of its contents.", Schema: BlockOverrides},
		Slot:            Required("Storage slot", "The key of the slot.", Slot, jsonrpc.Given("0x0")),
	}
}

// FilterID describes the identifier of a filter, which another method returns.
func FilterID(from string) jsonrpc.Param { return identifierOf("Filter identifier", from) }

func identifierOf(name, from string) jsonrpc.Param {
	return jsonrpc.Param{Name: name, Summary: "The identifier that " + from + " returned.", Schema: Identifier, Required: true, From: from}
}
