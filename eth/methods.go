package eth

import (
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// blocks describes the methods about blocks and their counts, which are not restricted by contract. The
// results are null if there is no such block.
func (d *Description) blocks() []jsonrpc.Method {
	byHash, byNumber := []jsonrpc.Param{d.BlockHash}, []jsonrpc.Param{d.BlockNumber}
	uncleIndex := Required("Uncle index", "The uncle's place in the block, from 0.", Number, jsonrpc.Given("0x0"))
	count, uncles := Result("Transaction count", QuantityOrNull), Result("Uncle count", QuantityOrNull)
	block, uncle := Result("Block information", nil), Result("Uncle", nil)
	return unrestricted(
		jsonrpc.Method{
			Name: "eth_getBlockByHash", Summary: "Returns the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash, d.Hydrated}, Result: block, Cost: jsonrpc.Light(20),
		},
		jsonrpc.Method{
			Name: "eth_getBlockByNumber", Summary: "Returns the block with a number or a tag.",
			Params: []jsonrpc.Param{d.BlockNumber, d.Hydrated}, Result: block, Cost: jsonrpc.Light(20),
		},
		jsonrpc.Method{
			Name: "eth_getBlockReceipts", Summary: "Returns the receipts of all transactions of a block.",
			Params: []jsonrpc.Param{d.Block}, Result: Result("Receipts information", nil),
		},
		jsonrpc.Method{
			Name: "eth_getBlockTransactionCountByHash", Summary: "Returns the number of transactions in the block with a hash.",
			Params: byHash, Result: count, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getBlockTransactionCountByNumber", Summary: "Returns the number of transactions in the block with a number or a tag.",
			Params: byNumber, Result: count, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getUncleCountByBlockHash", Summary: "Returns the number of uncles of the block with a hash.",
			Params: byHash, Result: uncles, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getUncleCountByBlockNumber", Summary: "Returns the number of uncles of the block with a number or a tag.",
			Params: byNumber, Result: uncles, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getUncleByBlockHashAndIndex", Summary: "Returns an uncle of the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash, uncleIndex}, Result: uncle, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getUncleByBlockNumberAndIndex", Summary: "Returns an uncle of the block with a number or a tag.",
			Params: []jsonrpc.Param{d.BlockNumber, uncleIndex}, Result: uncle, Cost: jsonrpc.Light(10),
		},
	)
}

// transactions describes the methods about transactions and their receipts, which are not restricted by contract.
func (d *Description) transactions(e *Examples) []jsonrpc.Method {
	transaction := Result("Transaction information", nil)
	return unrestricted(
		jsonrpc.Method{
			Name: "eth_getTransactionByHash", Summary: "Returns the transaction with a hash.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: transaction, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getTransactionByBlockHashAndIndex", Summary: "Returns a transaction of the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash, d.Index}, Result: transaction, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getTransactionByBlockNumberAndIndex", Summary: "Returns a transaction of the block with a number or a tag.",
			Params: []jsonrpc.Param{d.BlockNumber, d.Index}, Result: transaction, Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_getTransactionReceipt", Summary: "Returns the receipt of the transaction with a hash.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: Result("Receipt information", nil), Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_sendRawTransaction", Summary: "Takes a signed transaction to be included, and returns its hash.",
			Params: []jsonrpc.Param{Required("Transaction", "The transaction's encoding.", Data, e.RawTransaction)}, Result: Result("Transaction hash", Hash),
		},
	)
}

// state describes the methods about accounts and their storage, which concern the account.
func (d *Description) state() []jsonrpc.Method {
	account := []jsonrpc.Param{d.Address, Optional(d.State)}
	methods := []jsonrpc.Method{
		{
			Name: "eth_getBalance", Summary: "Returns the balance of an account.",
			Params: account, Result: Result("Balance", Quantity), Cost: jsonrpc.Light(10),
		},
		{
			Name: "eth_getCode", Summary: "Returns the code of an account.",
			Params: account, Result: Result("Bytecode", Data), Cost: jsonrpc.Light(10),
		},
		{
			Name: "eth_getTransactionCount", Summary: "Returns the nonce of an account: the number of transactions it has sent.",
			Params: account, Result: Result("Account nonce", Quantity), Cost: jsonrpc.Light(10),
		},
		{
			Name: "eth_getStorageAt", Summary: "Returns the value of a storage slot.",
			Params: []jsonrpc.Param{d.Address, d.Slot, Optional(d.State)}, Result: Result("Value", Hash), Cost: jsonrpc.Light(10),
		},
		{
			Name: "eth_getProof", Summary: "Returns an account and some of its slots with the trie nodes that prove them.",
			Params: []jsonrpc.Param{
				d.Address,
				Required("StorageKeys", "The slots to prove.", schema.Array(Slot), jsonrpc.Given([]string{"0x0"})),
				Optional(d.State),
			},
			Result: Result("Account", nil),
		},
	}
	for i := range methods {
		methods[i].Concerns = parameter.Concerning(FirstAddress)
	}
	return methods
}

// FirstAddress returns the first argument, an address: the contract whose state a call reads.
func FirstAddress(params []byte) ([]common.Address, error) {
	args := parameter.Read(params, parameter.MaxArguments, 1)
	address := args.Address(0)
	return []common.Address{address}, args.Err
}

// calls describes the methods that run messages.
func (d *Description) calls(e *Examples) []jsonrpc.Method {
	return []jsonrpc.Method{
		{
			Name: "eth_call", Summary: "Runs a message without creating a transaction and returns what its code returns.",
			Params: []jsonrpc.Param{d.Call, Optional(d.CallBlock), d.StateOverrides, d.BlockOverrides}, Result: Result("Return data", Data),
		},
		{
			Name: "eth_estimateGas", Summary: "Returns a gas limit that suffices for a message.",
			Params: []jsonrpc.Param{d.Call, Optional(d.CallBlock), d.StateOverrides, d.BlockOverrides}, Result: Result("Gas used", Quantity),
		},
		{
			Name: "eth_createAccessList", Summary: "Returns the accounts and slots that a message uses.",
			Params: []jsonrpc.Param{d.Call, Optional(d.CallBlock), d.StateOverrides},
			Result: Result("Gas used", schema.Object(schema.Members{"accessList": AccessList, "gasUsed": Quantity}, schema.Members{"error": schema.String})),
		},
		{
			Name: "eth_simulateV1", Summary: "Runs messages in blocks that might follow a block, and returns these blocks.",
			Params: []jsonrpc.Param{Required("Payload", "The blocks with their messages.", simulation, e.Simulation), Optional(d.CallBlock)},
			Result: Result("Result of calls", nil), Concerns: jsonrpc.AnyContract,
		},
	}
}

// fees describes the methods about the price of gas.
func (d *Description) fees() []jsonrpc.Method {
	return unrestricted(
		jsonrpc.Method{
			Name: "eth_gasPrice", Summary: "Returns a price of gas with which a transaction is soon included.",
			Result: Result("Gas price", Quantity), Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_maxPriorityFeePerGas", Summary: "Returns a tip with which a transaction is soon included.",
			Result: Result("Max priority fee per gas", Quantity), Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_blobBaseFee", Summary: "Returns the price of the head's blob gas, null before Cancun.",
			Result: Result("Blob gas base fee", QuantityOrNull), Cost: jsonrpc.Light(10),
		},
		jsonrpc.Method{
			Name: "eth_feeHistory", Summary: "Returns base fees, shares of gas used and rewards of a range of blocks.",
			Params: []jsonrpc.Param{
				Required("blockCount", "How many blocks, at most 1024.", schema.AnyOf(Number, schema.String, schema.Unsigned), jsonrpc.Given("0x5")),
				Required("newestBlock", "The last block of the range.", BlockNumber, jsonrpc.Given("latest")),
				{
					Name: "rewardPercentiles", Summary: "Which percentiles of the tips are returned, ascending.",
					Schema: schema.Array(schema.Number), Example: jsonrpc.Given([]int{25, 75}),
				},
			},
			Result: Result("Fee history result", nil),
		},
	)
}

// logs describes the methods that search logs, and those by which clients subscribe, and install and poll filters.
func (d *Description) logs(e *Examples) []jsonrpc.Method {
	identifier, success := Result("Filter identifier", Identifier), Result("Success", schema.Boolean)
	filtered, polled := parameter.Concerning(parameter.Emitters(0)), []jsonrpc.Param{FilterID("eth_newFilter")}
	return []jsonrpc.Method{
		{
			Name: "eth_getLogs", Summary: "Returns the logs that match a filter.",
			Params: []jsonrpc.Param{d.Filter}, Result: Result("Log objects", nil), Concerns: filtered,
		},
		{
			Name: "eth_subscribe", Summary: "Subscribes the connection to what happens on the chain; messages follow as notifications.",
			Result: Result("Subscription identifier", Identifier), Errors: []*jsonrpc.Error{feed.ErrUnsupported}, Cost: jsonrpc.Light(10), Stream: true,
		},
		{
			Name: "eth_unsubscribe", Summary: "Ends a subscription of the connection.",
			Params: []jsonrpc.Param{identifierOf("Subscription identifier", "eth_subscribe")}, Result: success,
			Errors: []*jsonrpc.Error{feed.ErrSubscriptionNotFound},
			Cost:   jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Stream: true, Handler: feed.Unsubscribe,
		},
		{
			Name: "eth_newFilter", Summary: "Installs a filter for logs, to be polled.",
			Params: []jsonrpc.Param{Required("Filter", "Which logs are wanted.", Filter, e.Watched)}, Result: identifier,
			Cost: jsonrpc.Light(10), Concerns: filtered,
		},
		{
			Name: "eth_newBlockFilter", Summary: "Installs a filter for hashes of new blocks, to be polled.",
			Result: identifier, Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract,
		},
		{
			Name: "eth_getFilterChanges", Summary: "Returns what has come since the filter was installed or last polled.",
			Params: polled, Result: Result("Log objects", nil), Errors: []*jsonrpc.Error{feed.ErrFilterNotFound},
			// Clients poll often, mostly for little, but one poll can return as much as eth_getLogs.
			Cost: jsonrpc.Heavy(20),
		},
		{
			Name: "eth_getFilterLogs", Summary: "Returns all logs that match a filter, as eth_getLogs does.",
			Params: polled, Result: Result("Log objects", nil),
		},
		{
			Name: "eth_uninstallFilter", Summary: "Removes a filter and returns whether there was one.",
			Params: polled, Result: success, Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract,
		},
	}
}

// SubscriptionKinds describes the parameter of eth_subscribe that says what messages are about.
func SubscriptionKinds(kinds ...string) jsonrpc.Param {
	return Required("Kind", "What the messages are about.", schema.Enum(kinds...), jsonrpc.Given("newHeads"))
}

// unrestricted describes methods whose answers are not restricted by contract.
func unrestricted(methods ...jsonrpc.Method) []jsonrpc.Method {
	for i := range methods {
		methods[i].Concerns = jsonrpc.NoContract
	}
	return methods
}
