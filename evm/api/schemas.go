package api

import (
	"maps"

	"ashlar/jsonrpc/schema"
)

// The schemas of single values.
var (
	quantitySchema = schema.Text("Quantity", "A number in hexadecimal without leading zeros.", "0x(0|[1-9a-f][0-9a-f]*)")
	// numberSchema is for parameters, whose digits may be in either case.
	numberSchema  = schema.Text("Number", "A number in hexadecimal without leading zeros, its digits in either case.", "0x(0|[1-9a-fA-F][0-9a-fA-F]*)")
	dataSchema    = schema.Text("Data", "Bytes in hexadecimal.", "0x([0-9a-fA-F]{2})*")
	hashSchema    = schema.Text("Hash", "32 bytes in hexadecimal.", "0x[0-9a-fA-F]{64}")
	addressSchema = schema.Text("Address", "The 20 bytes of an address in hexadecimal.", "0x[0-9a-fA-F]{40}")
	slotSchema    = schema.Text("Slot", "The key of a storage slot: at most 32 bytes in hexadecimal, of any length.", "(0x)?[0-9a-fA-F]{0,64}")
	idSchema      = schema.Text("Identifier", "The identifier of a subscription or a filter.", ".*")
	nonceSchema   = schema.Text("Nonce8", "The 8 bytes that prove the work of a block, in hexadecimal.", "0x[0-9a-f]{16}")
	bloomSchema   = schema.Text("Bloom", "A Bloom filter of 256 bytes in hexadecimal.", "0x[0-9a-f]{512}")

	tagSchema = schema.Enum("latest", "earliest", "pending", "safe", "finalized").
			Named("BlockTag", "A block by its place in the chain.")
	blockNumberSchema = schema.AnyOf(numberSchema, tagSchema).
				Named("BlockNumberOrTag", "A block by its number or its tag.")
	blockSchema = schema.AnyOf(numberSchema, tagSchema, hashSchema,
		schema.Object(schema.Members{"blockNumber": blockNumberSchema}, nil),
		schema.Object(schema.Members{"blockHash": hashSchema}, schema.Members{"requireCanonical": schema.Boolean}),
	).Named("BlockNumberOrTagOrHash", "A block by its number, its tag or its hash, or by an object as in EIP-1898.")
)

// The schemas of parameters.
var (
	addressesSchema = schema.AnyOf(addressSchema, schema.Array(addressSchema), schema.Null)
	topicsSchema    = schema.Array(schema.AnyOf(hashSchema, schema.Array(schema.OrNull(hashSchema)), schema.Null))

	filterSchema = schema.Object(nil, schema.Members{
		"fromBlock": blockNumberSchema, "toBlock": blockNumberSchema, "blockHash": hashSchema,
		"address": addressesSchema, "topics": topicsSchema,
	}).Named("Filter", "Which logs are wanted: those of some blocks, addresses and topics.")

	accessListSchema = schema.Array(schema.Object(schema.Members{
		"address": addressSchema, "storageKeys": schema.Array(hashSchema),
	}, nil)).Named("AccessList", "Addresses and storage slots that a transaction declares.")
	authorizationsSchema = schema.Array(schema.Object(schema.Members{
		"chainId": numberSchema, "address": addressSchema, "nonce": numberSchema, "yParity": numberSchema, "r": numberSchema, "s": numberSchema,
	}, nil)).Named("AuthorizationList", "Accounts that delegate to the code of others, as in EIP-7702.")

	callSchema = schema.Object(nil, schema.Members{
		"from": addressSchema, "to": schema.OrNull(addressSchema), "gas": numberSchema,
		"gasPrice": numberSchema, "maxFeePerGas": numberSchema, "maxPriorityFeePerGas": numberSchema, "maxFeePerBlobGas": numberSchema,
		"value": numberSchema, "nonce": numberSchema, "chainId": numberSchema, "input": dataSchema, "data": dataSchema,
		"accessList": accessListSchema, "authorizationList": authorizationsSchema, "blobVersionedHashes": schema.Array(hashSchema),
	}).Named("Call", "A message to run. Without `to` its data creates a contract.")

	slotsSchema          = schema.Map(hashSchema)
	stateOverridesSchema = schema.Map(schema.OrNull(schema.Object(nil, schema.Members{
		"balance": numberSchema, "nonce": numberSchema, "code": dataSchema, "movePrecompileToAddress": addressSchema,
		"state": slotsSchema, "stateDiff": slotsSchema,
	}))).Named("StateOverrides", "Accounts, by address, that the call sees with other contents.")
	blockOverridesSchema = schema.Object(nil, schema.Members{
		"number": numberSchema, "time": numberSchema, "gasLimit": numberSchema, "feeRecipient": addressSchema, "prevRandao": hashSchema,
		"difficulty": numberSchema, "baseFeePerGas": numberSchema, "blobBaseFee": numberSchema,
	}).Named("BlockOverrides", "Members of the block that the call sees with other values.")
)

// The schemas of results.
var (
	optionalQuantity = schema.OrNull(quantitySchema)

	withdrawalSchema = schema.Object(schema.Members{
		"index": quantitySchema, "validatorIndex": quantitySchema, "address": addressSchema, "amount": quantitySchema,
	}, nil).Named("Withdrawal", "A payment of a validator's balance.")

	headerMembers = schema.Members{
		"number": optionalQuantity, "hash": schema.OrNull(hashSchema), "nonce": schema.OrNull(nonceSchema), "logsBloom": schema.OrNull(bloomSchema),
		"parentHash": hashSchema, "mixHash": hashSchema, "sha3Uncles": hashSchema, "stateRoot": hashSchema, "miner": addressSchema,
		"difficulty": quantitySchema, "extraData": dataSchema, "gasLimit": quantitySchema, "gasUsed": quantitySchema, "timestamp": quantitySchema,
		"transactionsRoot": hashSchema, "receiptsRoot": hashSchema, "size": quantitySchema, "uncles": schema.Array(hashSchema),
	}
	forkMembers = schema.Members{
		"baseFeePerGas": quantitySchema, "withdrawalsRoot": hashSchema, "blobGasUsed": quantitySchema, "excessBlobGas": quantitySchema,
		"parentBeaconBlockRoot": hashSchema, "requestsHash": hashSchema, "blockAccessListHash": hashSchema, "slotNumber": quantitySchema,
		"totalDifficulty": quantitySchema, "withdrawals": schema.Array(withdrawalSchema),
		"transactions": schema.AnyOf(schema.Array(hashSchema), schema.Array(transactionSchema)),
	}
	blockResultSchema = schema.Object(headerMembers, forkMembers).
				Named("Block", "A block, or an uncle. Number, hash, nonce and logsBloom of the pending block are null.")

	// headerSchema is a block without the members that are not in its header.
	headerSchema = schema.Object(nil, func() schema.Members {
		all := maps.Clone(headerMembers)
		maps.Copy(all, forkMembers)
		return all
	}()).Named("Header", "The header of a block.")

	transactionSchema = schema.Object(schema.Members{
		"blockHash": schema.OrNull(hashSchema), "blockNumber": optionalQuantity, "blockTimestamp": optionalQuantity, "transactionIndex": optionalQuantity,
		"from": addressSchema, "to": schema.OrNull(addressSchema), "gas": quantitySchema, "gasPrice": quantitySchema, "hash": hashSchema,
		"input": dataSchema, "nonce": quantitySchema, "value": quantitySchema, "type": quantitySchema,
		"v": quantitySchema, "r": quantitySchema, "s": quantitySchema,
	}, schema.Members{
		"maxFeePerGas": quantitySchema, "maxPriorityFeePerGas": quantitySchema, "maxFeePerBlobGas": quantitySchema, "chainId": quantitySchema,
		"yParity": quantitySchema, "accessList": accessListSchema, "authorizationList": authorizationsSchema, "blobVersionedHashes": schema.Array(hashSchema),
	}).Named("Transaction", "A transaction. Its place is null while it is pending.")

	logSchema = schema.Object(schema.Members{
		"address": addressSchema, "topics": schema.Array(hashSchema), "data": dataSchema, "removed": schema.Boolean,
		"blockNumber": optionalQuantity, "blockHash": schema.OrNull(hashSchema), "blockTimestamp": optionalQuantity,
		"transactionHash": schema.OrNull(hashSchema), "transactionIndex": optionalQuantity, "logIndex": optionalQuantity,
	}, nil).Named("Log", "A log. Its place is null while it is pending; `removed` says that its block has left the chain.")

	receiptSchema = schema.Object(schema.Members{
		"blockHash": hashSchema, "blockNumber": quantitySchema, "contractAddress": schema.OrNull(addressSchema), "cumulativeGasUsed": quantitySchema,
		"effectiveGasPrice": quantitySchema, "from": addressSchema, "to": schema.OrNull(addressSchema), "gasUsed": quantitySchema,
		"logs": schema.Array(logSchema), "logsBloom": bloomSchema, "transactionHash": hashSchema, "transactionIndex": quantitySchema, "type": quantitySchema,
	}, schema.Members{
		"status": quantitySchema, "root": hashSchema, "blobGasUsed": quantitySchema, "blobGasPrice": quantitySchema,
	}).Named("Receipt", "What a transaction did. It has `root` before Byzantium and `status` since.")

	proofNodesSchema = schema.Array(dataSchema)
	proofSchema      = schema.Object(schema.Members{
		"address": addressSchema, "accountProof": proofNodesSchema, "balance": quantitySchema, "codeHash": hashSchema, "nonce": quantitySchema,
		"storageHash": hashSchema, "storageProof": schema.Array(schema.Object(schema.Members{
			"key": dataOrQuantity, "value": quantitySchema, "proof": proofNodesSchema,
		}, nil)),
	}, nil).Named("AccountProof", "An account with the trie nodes that prove it and its slots.")
	dataOrQuantity = schema.AnyOf(hashSchema, quantitySchema)

	feeHistorySchema = schema.Object(schema.Members{
		"oldestBlock": quantitySchema, "gasUsedRatio": schema.OrNull(schema.Array(schema.Number)),
	}, schema.Members{
		"baseFeePerGas": schema.Array(quantitySchema), "baseFeePerBlobGas": schema.Array(quantitySchema),
		"blobGasUsedRatio": schema.Array(schema.Number), "reward": schema.Array(schema.Array(quantitySchema)),
	}).Named("FeeHistory", "Base fees, rewards and shares of gas used, of a range of blocks.")

	poolContentSchema = schema.Map(transactionSchema) // by nonce
	forkSchema        = schema.Object(schema.Members{
		"activationTime": schema.Unsigned, "chainId": quantitySchema, "forkId": dataSchema,
		"precompiles": schema.Map(addressSchema), "systemContracts": schema.Map(addressSchema),
	}, nil).Named("Fork", "The rules of one fork, as in EIP-7910.")
	historySchema = schema.Object(schema.Members{"disabled": schema.Boolean, "oldestBlock": quantitySchema}, nil)
)
