package eth

import "ashlar/jsonrpc/schema"

// The schemas of single values.
var (
	Quantity = schema.Text("Quantity", "A number in hexadecimal without leading zeros.", "0x(0|[1-9a-f][0-9a-f]*)")
	// Number is for parameters, whose digits may be in either case.
	Number     = schema.Text("Number", "A number in hexadecimal without leading zeros, its digits in either case.", "0x(0|[1-9a-fA-F][0-9a-fA-F]*)")
	Data       = schema.Text("Data", "Bytes in hexadecimal.", "0x([0-9a-fA-F]{2})*")
	Hash       = schema.Text("Hash", "32 bytes in hexadecimal.", "0x[0-9a-fA-F]{64}")
	Address    = schema.Text("Address", "The 20 bytes of an address in hexadecimal.", "0x[0-9a-fA-F]{40}")
	Slot       = schema.Text("Slot", "The key of a storage slot: at most 32 bytes in hexadecimal, of any length.", "(0x)?[0-9a-fA-F]{0,64}")
	Identifier = schema.Text("Identifier", "The identifier of a subscription or a filter.", ".*")

	tag = schema.Enum("latest", "earliest", "pending", "safe", "finalized").
		Named("BlockTag", "A block by its place in the chain.")
	BlockNumber = schema.AnyOf(Number, tag).
			Named("BlockNumberOrTag", "A block by its number or its tag.")
	Block = schema.AnyOf(Number, tag, Hash,
		schema.Object(schema.Members{"blockNumber": BlockNumber}, nil),
		schema.Object(schema.Members{"blockHash": Hash}, schema.Members{"requireCanonical": schema.Boolean}),
	).Named("BlockNumberOrTagOrHash", "A block by its number, its tag or its hash, or by an object as in EIP-1898.")

	QuantityOrNull = schema.OrNull(Quantity)
)

// The schemas of parameters with members. Like all objects, they may have others besides.
var (
	// Addresses are those of a filter.
	Addresses = schema.AnyOf(Address, schema.Array(Address), schema.Null)
	topics    = schema.Array(schema.AnyOf(Hash, schema.Array(schema.OrNull(Hash)), schema.Null))

	Filter = schema.Object(nil, schema.Members{
		"fromBlock": BlockNumber.Described("The first block; latest by default."),
		"toBlock":   BlockNumber.Described("The last block; latest by default."),
		"blockHash": Hash.Described("The only block, in place of fromBlock and toBlock."),
		"address":   Addresses.Described("The contract that emitted the logs, or a list of such contracts; all by default."),
		"topics":    topics.Described("What the topics are, by position: a hash, a list of which any fits, or null for all. Later topics may be anything."),
	}).Named("Filter", "Which logs are wanted: those of some blocks, addresses and topics.")

	AccessList = schema.Array(schema.Object(schema.Members{
		"address": Address, "storageKeys": schema.Array(Hash),
	}, nil)).Named("AccessList", "Addresses and storage slots that a transaction declares.")
	AuthorizationList = schema.Array(schema.Object(schema.Members{
		"chainId": Number, "address": Address, "nonce": Number, "yParity": Number, "r": Number, "s": Number,
	}, nil)).Named("AuthorizationList", "Accounts that delegate to the code of others, as in EIP-7702.")

	Call = schema.Object(nil, schema.Members{
		"from": Address, "to": schema.OrNull(Address), "gas": Number,
		"gasPrice": Number, "maxFeePerGas": Number, "maxPriorityFeePerGas": Number, "maxFeePerBlobGas": Number,
		"value": Number, "nonce": Number, "chainId": Number, "input": Data, "data": Data,
		"accessList": AccessList, "authorizationList": AuthorizationList, "blobVersionedHashes": schema.Array(Hash),
	}).Named("Call", "A message to run. Without `to` its data creates a contract.")

	slots          = schema.Map(Hash)
	StateOverrides = schema.Map(schema.OrNull(schema.Object(nil, schema.Members{
		"balance": Number, "nonce": Number, "code": Data, "movePrecompileToAddress": Address, "state": slots, "stateDiff": slots,
	}))).Named("StateOverrides", "Accounts, by address, that the call sees with other contents.")
	BlockOverrides = schema.Object(nil, schema.Members{
		"number": Number, "time": Number, "gasLimit": Number, "feeRecipient": Address, "prevRandao": Hash,
		"difficulty": Number, "baseFeePerGas": Number, "blobBaseFee": Number,
	}).Named("BlockOverrides", "Members of the block that the call sees with other values.")

	simulation = schema.Object(schema.Members{
		"blockStateCalls": schema.Array(schema.Object(nil, schema.Members{
			"blockOverrides": simulatedOverrides, "stateOverrides": StateOverrides, "calls": schema.Array(Call),
		})),
	}, schema.Members{"traceTransfers": schema.Boolean, "validation": schema.Boolean, "returnFullTransactions": schema.Boolean}).
		Named("Simulation", "Blocks of messages to run, each on what those before it left.")
	simulatedOverrides = schema.Object(nil, schema.Members{
		"number": Number, "time": Number, "gasLimit": Number, "feeRecipient": Address, "prevRandao": Hash,
		"difficulty": Number, "baseFeePerGas": Number, "blobBaseFee": Number, "beaconRoot": Hash,
		"withdrawals": schema.Array(schema.Object(nil, nil)),
	})
)
