package api

import (
	"ashlar/events"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// The schemas of values.
var (
	feltSchema        = schema.Text("Felt", "A field element in hexadecimal, without leading zeros in answers.", "0x[0-9a-fA-F]{1,64}")
	messageHashSchema = schema.Text("MessageHash", "The 32 bytes of the hash of a message from L1.", "0x[0-9a-f]{64}")
	blockSchema       = events.BlockSchema(feltSchema, true)
	statusSchema      = schema.Enum("ACCEPTED_ON_L2", "ACCEPTED_ON_L1", "REJECTED")

	priceSchema = schema.Object(schema.Members{"price_in_fri": feltSchema, "price_in_wei": feltSchema}, nil).
			Named("ResourcePrice", "The price of a unit of gas in both currencies.")

	blockResultSchema = schema.Object(schema.Members{
		"parent_hash": feltSchema, "block_number": schema.Unsigned, "timestamp": schema.Unsigned, "sequencer_address": feltSchema,
		"l1_gas_price": priceSchema, "l1_data_gas_price": priceSchema, "l2_gas_price": priceSchema,
		"l1_da_mode": schema.Enum("BLOB", "CALLDATA"), "starknet_version": schema.String, "transactions": schema.Array(feltSchema),
	}, schema.Members{
		"status": statusSchema, "block_hash": feltSchema, "new_root": feltSchema,
		"transaction_commitment": feltSchema, "event_commitment": feltSchema, "receipt_commitment": feltSchema, "state_diff_commitment": feltSchema,
		"transaction_count": schema.Unsigned, "event_count": schema.Unsigned, "state_diff_length": schema.Unsigned,
	}).Named("BlockWithTxHashes", "A block with the hashes of its transactions. The pending block has no status, hash and root.")

	receiptSchema = schema.Object(schema.Members{
		"type": schema.Enum("INVOKE", "L1_HANDLER", "DECLARE", "DEPLOY", "DEPLOY_ACCOUNT"), "transaction_hash": feltSchema,
		"actual_fee":       schema.Object(schema.Members{"amount": feltSchema, "unit": schema.Enum("WEI", "FRI")}, nil),
		"execution_status": schema.Enum("SUCCEEDED", "REVERTED"), "finality_status": statusSchema,
		"block_hash": feltSchema, "block_number": schema.Unsigned,
		"messages_sent": schema.Array(schema.Object(schema.Members{
			"from_address": feltSchema, "to_address": feltSchema, "payload": schema.Array(feltSchema),
		}, nil)),
		"events": schema.Array(schema.Object(schema.Members{
			"from_address": feltSchema, "keys": schema.Array(feltSchema), "data": schema.Array(feltSchema),
		}, nil)),
		"execution_resources": schema.Object(schema.Members{
			"l1_gas": schema.Unsigned, "l1_data_gas": schema.Unsigned, "l2_gas": schema.Unsigned,
		}, nil),
	}, schema.Members{
		"revert_reason": schema.String, "contract_address": feltSchema, "message_hash": messageHashSchema,
	}).Named("TransactionReceipt", "What a transaction did.")
)

// The errors that methods document.
var (
	errTransactionNotFound = &jsonrpc.Error{Code: codeUnknownTransaction, Message: "Transaction hash not found"}

	emptyErrors = errorsOf(events.NoBlocks())
	blockErrors = errorsOf(events.UnknownBlock(""), events.NoBlocks())
)
