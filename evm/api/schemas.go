package api

import (
	"maps"

	"ashlar/eth"
	"ashlar/jsonrpc/schema"
)

// The schemas of single values that only results have.
var (
	nonceSchema = schema.Text("Nonce8", "The 8 bytes that prove the work of a block, in hexadecimal.", "0x[0-9a-f]{16}")
	bloomSchema = schema.Text("Bloom", "A Bloom filter of 256 bytes in hexadecimal.", "0x[0-9a-f]{512}")
)

// The schemas of results.
var (
	withdrawalSchema = schema.Object(schema.Members{
		"index": eth.Quantity, "validatorIndex": eth.Quantity, "address": eth.Address, "amount": eth.Quantity,
	}, nil).Named("Withdrawal", "A payment of a validator's balance.")

	headerMembers = schema.Members{
		"number": eth.QuantityOrNull, "hash": schema.OrNull(eth.Hash), "nonce": schema.OrNull(nonceSchema), "logsBloom": schema.OrNull(bloomSchema),
		"parentHash": eth.Hash, "mixHash": eth.Hash, "sha3Uncles": eth.Hash, "stateRoot": eth.Hash, "miner": eth.Address,
		"difficulty": eth.Quantity, "extraData": eth.Data, "gasLimit": eth.Quantity, "gasUsed": eth.Quantity, "timestamp": eth.Quantity,
		"transactionsRoot": eth.Hash, "receiptsRoot": eth.Hash, "size": eth.Quantity, "uncles": schema.Array(eth.Hash),
	}
	forkMembers = schema.Members{
		"baseFeePerGas": eth.Quantity, "withdrawalsRoot": eth.Hash, "blobGasUsed": eth.Quantity, "excessBlobGas": eth.Quantity,
		"parentBeaconBlockRoot": eth.Hash, "requestsHash": eth.Hash, "blockAccessListHash": eth.Hash, "slotNumber": eth.Quantity,
		"totalDifficulty": eth.Quantity, "withdrawals": schema.Array(withdrawalSchema),
		"transactions": schema.AnyOf(schema.Array(eth.Hash), schema.Array(transactionSchema)),
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
		"blockHash": schema.OrNull(eth.Hash), "blockNumber": eth.QuantityOrNull, "blockTimestamp": eth.QuantityOrNull, "transactionIndex": eth.QuantityOrNull,
		"from": eth.Address, "to": schema.OrNull(eth.Address), "gas": eth.Quantity, "gasPrice": eth.Quantity, "hash": eth.Hash,
		"input": eth.Data, "nonce": eth.Quantity, "value": eth.Quantity, "type": eth.Quantity,
		"v": eth.Quantity, "r": eth.Quantity, "s": eth.Quantity,
	}, schema.Members{
		"maxFeePerGas": eth.Quantity, "maxPriorityFeePerGas": eth.Quantity, "maxFeePerBlobGas": eth.Quantity, "chainId": eth.Quantity,
		"yParity": eth.Quantity, "accessList": eth.AccessList, "authorizationList": eth.AuthorizationList, "blobVersionedHashes": schema.Array(eth.Hash),
	}).Named("Transaction", "A transaction. Its place is null while it is pending.")

	logSchema = schema.Object(schema.Members{
		"address": eth.Address.Described("The contract that emitted the log."), "topics": schema.Array(eth.Hash),
		"data": eth.Data, "removed": schema.Boolean.Described("Whether the log's block has left the chain."),
		"blockNumber": eth.QuantityOrNull, "blockHash": schema.OrNull(eth.Hash), "blockTimestamp": eth.QuantityOrNull,
		"transactionHash": schema.OrNull(eth.Hash), "transactionIndex": eth.QuantityOrNull,
		"logIndex": eth.QuantityOrNull.Described("The log's place in the block, from 0."),
	}, nil).Named("Log", "A log. Its place is null while it is pending; `removed` says that its block has left the chain.")

	receiptSchema = schema.Object(schema.Members{
		"blockHash": eth.Hash, "blockNumber": eth.Quantity, "contractAddress": schema.OrNull(eth.Address), "cumulativeGasUsed": eth.Quantity,
		"effectiveGasPrice": eth.Quantity, "from": eth.Address, "to": schema.OrNull(eth.Address), "gasUsed": eth.Quantity,
		"logs": schema.Array(logSchema), "logsBloom": bloomSchema, "transactionHash": eth.Hash, "transactionIndex": eth.Quantity, "type": eth.Quantity,
	}, schema.Members{
		"status": eth.Quantity, "root": eth.Hash, "blobGasUsed": eth.Quantity, "blobGasPrice": eth.Quantity,
	}).Named("Receipt", "What a transaction did. It has `root` before Byzantium and `status` since.")

	proofNodesSchema = schema.Array(eth.Data)
	proofSchema      = schema.Object(schema.Members{
		"address": eth.Address, "accountProof": proofNodesSchema, "balance": eth.Quantity, "codeHash": eth.Hash, "nonce": eth.Quantity,
		"storageHash": eth.Hash, "storageProof": schema.Array(schema.Object(schema.Members{
			"key": dataOrQuantity, "value": eth.Quantity, "proof": proofNodesSchema,
		}, nil)),
	}, nil).Named("AccountProof", "An account with the trie nodes that prove it and its slots.")
	dataOrQuantity = schema.AnyOf(eth.Hash, eth.Quantity)

	feeHistorySchema = schema.Object(schema.Members{
		"oldestBlock": eth.Quantity, "gasUsedRatio": schema.OrNull(schema.Array(schema.Number)),
	}, schema.Members{
		"baseFeePerGas": schema.Array(eth.Quantity), "baseFeePerBlobGas": schema.Array(eth.Quantity),
		"blobGasUsedRatio": schema.Array(schema.Number), "reward": schema.Array(schema.Array(eth.Quantity)),
	}).Named("FeeHistory", "Base fees, rewards and shares of gas used, of a range of blocks.")

	poolContentSchema = schema.Map(transactionSchema) // by nonce
	forkSchema        = schema.Object(schema.Members{
		"activationTime": schema.Unsigned, "chainId": eth.Quantity, "forkId": eth.Data,
		"precompiles": schema.Map(eth.Address), "systemContracts": schema.Map(eth.Address),
	}, nil).Named("Fork", "The rules of one fork, as in EIP-7910.")
	historySchema = schema.Object(schema.Members{"disabled": schema.Boolean, "oldestBlock": eth.Quantity}, nil)
)
