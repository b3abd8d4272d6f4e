package api

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// transactionMethods describes the methods about transactions and receipts.
func (a *API) transactionMethods(p parameters) []jsonrpc.Method {
	transaction := result("Transaction information", object)
	raw := required("Transaction", "The signed transaction in its binary form.", data, nil)
	raw.Example = jsonrpc.Given("0x")
	return []jsonrpc.Method{
		{
			Name: "eth_getTransactionByHash", Summary: "Returns the transaction with a hash.",
			Params: []jsonrpc.Param{p.transactionHash}, Result: transaction,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.lookup("eth_getTransactionByHash", 1),
		},
		{
			Name: "eth_getTransactionByBlockNumberAndIndex", Summary: "Returns a transaction of the block with a number or a tag.",
			Params: []jsonrpc.Param{p.blockNumber, p.index}, Result: transaction,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract,
			Handler: a.ofNumber(named{"eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex", 2, nil}),
		},
		{
			Name: "eth_getTransactionByBlockHashAndIndex", Summary: "Returns a transaction of the block with a hash.",
			Params: []jsonrpc.Param{p.blockHash, p.index}, Result: transaction,
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.ofHash("eth_getTransactionByBlockHashAndIndex", 2),
		},
		{
			Name: "eth_getTransactionReceipt", Summary: "Returns the receipt of a transaction.",
			Params: []jsonrpc.Param{p.transactionHash}, Result: result("Receipt information", object),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.lookup("eth_getTransactionReceipt", 1),
		},
		{
			Name: "eth_sendRawTransaction", Summary: "Sends a signed transaction to several nodes, and returns its hash.",
			Params: []jsonrpc.Param{raw}, Result: result("Transaction hash", hash), ExampleFails: "it sends no transaction",
			Cost: jsonrpc.Light(100), Concerns: jsonrpc.NoContract, Handler: a.send,
		},
		{
			Name: "eth_pendingTransactions", Summary: "Returns an empty list: the server holds no accounts.",
			Result: result("Pending transactions", schema.Array(object)),
			Cost:   jsonrpc.Light(1), Concerns: jsonrpc.NoContract,
			Handler: func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, "[]"...), nil },
		},
	}
}

// send answers eth_sendRawTransaction.
func (a *API) send(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	if args.Err != nil {
		return out, args.Err
	}
	answer, err := a.chain.Send(ctx, replaced(&args, 0, string(args.Raw(0))))
	if err != nil {
		return out, err
	}
	return appendResult(ctx, out, answer)
}
