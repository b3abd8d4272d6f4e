package events

import (
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// BlockSchema describes a block parameter whose hash is described by hash. l1Tag adds the
// tag l1_accepted.
func BlockSchema(hash *schema.Schema, l1Tag bool) *schema.Schema {
	tags := []string{"latest", "pending", "pre_confirmed"}
	if l1Tag {
		tags = append(tags, "l1_accepted")
	}
	return schema.AnyOf(
		schema.Enum(tags...),
		schema.Object(schema.Members{"block_number": schema.Unsigned}, nil),
		schema.Object(schema.Members{"block_hash": hash}, nil),
	).Named("BlockId", "A block by its number, its hash or its tag.")
}

// filterSchema describes the filter of a call.
func (n Network) filterSchema() *schema.Schema {
	block, most := BlockSchema(n.Word, n.L1Tag), maxChunkSize
	size := schema.Integer(1)
	size.Maximum = &most
	keys := schema.Array(schema.AnyOf(n.Word, schema.Array(n.Word), schema.Null))
	address := n.Address
	if n.AddressLists {
		address = schema.AnyOf(n.Address, schema.Array(n.Address))
	}
	return schema.Object(
		schema.Members{"chunk_size": size},
		schema.Members{"from_block": block, "to_block": block, "address": address, "keys": keys, "continuation_token": schema.String},
	).Named("EventFilter", "Which events are wanted: those of some blocks, of a contract, and with some keys; and how many in a page.")
}

// pageSchema describes a page of events.
func (n Network) pageSchema() *schema.Schema {
	event := schema.Object(schema.Members{
		"transaction_hash": n.Word,
		"from_address":     n.Address, "keys": schema.Array(n.Word), "data": schema.Array(schema.String),
	}, schema.Members{
		"block_hash": n.Word, "block_number": schema.Unsigned,
		"transaction_index": schema.Unsigned, "event_index": schema.Unsigned,
	}).Named("EmittedEvent", "An event with its place in the chain. A pending event has no hash and number of its block.")
	return schema.Object(schema.Members{"events": schema.Array(event)}, schema.Members{"continuation_token": schema.String})
}

// Errors returns the errors of methods that return events.
func Errors() []*jsonrpc.Error {
	return []*jsonrpc.Error{errUnknownBlock, errPageSize, errNoBlocks, errToken, errTooManyKeys}
}
