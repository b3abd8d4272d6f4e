package api

import (
	"bytes"
	"context"
	"math/big"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/core/types"
)

// selectorBytes is how much of the input of a transaction Otterscan gets.
const selectorBytes = 4

// otsLevel is the level of Otterscan's API that is served.
const otsLevel = "8"

// otsMethods describes the methods of the explorer Otterscan.
func (a *API) otsMethods(d *eth.Description) []jsonrpc.Method {
	number := eth.Required("Block number", "The number of the block.", schema.AnyOf(eth.BlockNumber, schema.Unsigned), a.example(func(s *sample) any { return s.block.Number }))
	state := eth.Required("Block", "The block after which the state is read; latest by default.", schema.AnyOf(eth.Block, schema.Unsigned), jsonrpc.Given("latest"))
	count := func(name, summary string, example int) jsonrpc.Param {
		return eth.Required(name, summary, schema.Unsigned, jsonrpc.Given(example))
	}
	details := eth.Result("Block details", schema.OrNull(blockDetailsSchema))
	traceErrors := append(errorsOf(execute.ErrGenesis, errTraceTime, errNoTransaction), blockErrors...)
	return []jsonrpc.Method{
		{
			Name: "ots_getApiLevel", Summary: "Returns the level of Otterscan's API that is served.", Result: eth.Result("Level", schema.Unsigned),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: eth.Constant([]byte(otsLevel)),
		},
		{
			Name: "ots_hasCode", Summary: "Returns whether an account is a contract.",
			Params: []jsonrpc.Param{d.Address, eth.Optional(state)}, Result: eth.Result("Has code", schema.Boolean), Errors: blockErrors,
			Cost: jsonrpc.Light(10), Concerns: parameter.Concerning(eth.FirstAddress), Handler: a.hasCode,
		},
		{
			Name: "ots_getBlockDetails", Summary: "Returns a block without its transactions, with its rewards and fees.",
			Params: []jsonrpc.Param{number}, Result: details, Errors: namedBlockErrors,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.blockDetails(plainBlock),
		},
		{
			Name: "ots_getBlockDetailsByHash", Summary: "Returns a block without its transactions, with its rewards and fees.",
			Params: []jsonrpc.Param{d.BlockHash}, Result: details,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.blockDetails((*parameter.Arguments).BlockHash),
		},
		{
			Name: "ots_getBlockTransactions", Summary: "Returns a page of a block's transactions with their receipts, without logs and most of the input. Page 0 is the block's end.",
			Params: []jsonrpc.Param{number, count("Page", "The page, from 0.", 0), count("Page size", "The largest number of transactions.", 25)},
			Result: eth.Result("Transactions", schema.OrNull(blockTransactionsSchema)), Errors: namedBlockErrors,
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.blockTransactions,
		},
		{
			Name: "ots_getInternalOperations", Summary: "Returns the transfers, creations and self-destructions inside of a transaction.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: eth.Result("Operations", schema.Array(operationSchema)), Errors: traceErrors,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.otsTrace(appendOperations),
		},
		{
			Name: "ots_traceTransaction", Summary: "Returns the calls of a transaction.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: eth.Result("Calls", schema.Array(otsCallSchema)), Errors: traceErrors,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.otsTrace(appendOtsCalls),
		},
		{
			Name: "ots_getTransactionError", Summary: "Returns what a reverted transaction returned.",
			Params: []jsonrpc.Param{d.TransactionHash}, Result: eth.Result("Data", eth.Data), Errors: traceErrors,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.otsTrace(appendOtsError),
		},
		{
			Name: "ots_getTransactionBySenderAndNonce", Summary: "Returns the hash of the transaction of a sender with a nonce.",
			Params: a.senderAndNonce(schema.Unsigned, 0), Result: eth.Result("Transaction hash", schema.OrNull(eth.Hash)),
			Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.hashBySender,
		},
		{
			Name: "ots_getContractCreator", Summary: "Returns the transaction that created a contract, and the account that did.",
			Params: []jsonrpc.Param{d.Address}, Result: eth.Result("Creator", schema.OrNull(schema.Object(schema.Members{"hash": eth.Hash, "creator": eth.Address}, nil))),
			Errors: errorsOf(errTraceTime),
			Cost:   jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.contractCreator,
		},
		{
			Name: "erigon_getHeaderByNumber", Summary: "Returns the header of the block with a number or a tag.",
			Params: []jsonrpc.Param{number}, Result: eth.Result("Header", schema.OrNull(headerSchema)), Errors: namedBlockErrors,
			// Otterscan finds out with [1] whether this is a node that it can use.
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.ofBlock(plainBlock, appendHeaderOf),
		},
		{
			Name: "erigon_getHeaderByHash", Summary: "Returns the header of the block with a hash.",
			Params: []jsonrpc.Param{d.BlockHash}, Result: eth.Result("Header", schema.OrNull(headerSchema)),
			Cost: jsonrpc.Light(10), Concerns: jsonrpc.NoContract, Handler: a.ofBlock((*parameter.Arguments).BlockHash, appendHeaderOf),
		},
	}
}

// The schemas of Otterscan's answers.
var (
	blockDetailsSchema = schema.Object(schema.Members{
		"block":    schema.Object(schema.Members{"number": eth.QuantityOrNull, "hash": schema.OrNull(eth.Hash), "logsBloom": schema.Null, "transactionCount": schema.Unsigned}, nil),
		"issuance": schema.Object(schema.Members{"blockReward": eth.Quantity, "uncleReward": eth.Quantity, "issuance": eth.Quantity}, nil), "totalFees": eth.Quantity,
	}, nil).Named("BlockDetails", "A block without transactions and bloom, its rewards, and the fees that senders paid.")
	blockTransactionsSchema = schema.Object(schema.Members{
		"fullblock": schema.Object(schema.Members{"transactions": schema.Array(transactionSchema), "transactionCount": schema.Unsigned}, nil),
		"receipts":  schema.Array(schema.Object(schema.Members{"logs": schema.Null, "logsBloom": schema.Null, "transactionHash": eth.Hash}, nil)),
	}, nil).Named("BlockTransactions", "Transactions with their receipts.")
	operationSchema = schema.Object(schema.Members{"type": schema.Unsigned, "from": eth.Address, "to": eth.Address, "value": eth.Quantity}, nil).
			Named("Operation", "0: a transfer, 1: a self-destruction, 2: CREATE, 3: CREATE2.")
	otsCallSchema = schema.Object(schema.Members{
		"type": schema.String, "depth": schema.Unsigned, "from": eth.Address, "to": eth.Address, "value": eth.QuantityOrNull, "input": eth.Data, "output": eth.Data,
	}, nil).Named("OtterscanCall", "A call, a creation or a self-destruction.")
)

// plainBlock decodes a block number that may also be a JSON number.
func plainBlock(args *parameter.Arguments, n int) chain.BlockID {
	return parameter.Decode(args, n, orPlain(parameter.ParseBlockNumber))
}

// orPlain returns a function that decodes a block as parse does, or a JSON number.
func orPlain(parse func(raw []byte) (chain.BlockID, error)) func(raw []byte) (chain.BlockID, error) {
	return func(raw []byte) (chain.BlockID, error) {
		if number, err := parsePlain(raw); err == nil {
			return chain.BlockID{Number: number}, nil
		}
		return parse(raw)
	}
}

// hasCode answers ots_hasCode. Otterscan names the block by a plain number.
func (a *API) hasCode(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	address, id := args.Address(0), chain.BlockID{Tag: chain.Latest}
	if args.Given(1) {
		id = parameter.Decode(&args, 1, orPlain(parameter.ParseBlock))
	}
	if args.Err != nil {
		return out, args.Err
	}
	account, _, err := a.accountAt(ctx, address, id)
	if err != nil {
		return out, err
	}
	if account != nil && !bytes.Equal(account.CodeHash, types.EmptyCodeHash[:]) {
		return append(out, "true"...), nil
	}
	return append(out, "false"...), nil
}

// blockDetails answers ots_getBlockDetails and ots_getBlockDetailsByHash.
func (a *API) blockDetails(which blockArgument) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		id := which(&args, 0)
		if args.Err != nil {
			return out, args.Err
		}
		b, err := a.findWithReceipts(ctx, id)
		if b == nil || err != nil {
			return appendNull(out), err
		}
		defer b.release()
		fees, err := b.fees()
		if err != nil {
			return out, err
		}
		uncles, err := b.body.Uncles()
		if err != nil {
			return out, err
		}
		var forBlock, forUncles big.Int
		for _, reward := range a.chain.Executor().Rewards(b.Header.Header, uncles) {
			to := &forBlock
			if reward.Uncle {
				to = &forUncles
			}
			to.Add(to, reward.Value.ToBig())
		}
		if out, err = b.appendSlim(append(out, `{"block":`...)); err != nil {
			return out, err
		}
		out = appendBig(append(out, `},"issuance":{"blockReward":`...), &forBlock)
		out = appendBig(append(out, `,"uncleReward":`...), &forUncles)
		out = appendBig(append(out, `,"issuance":`...), new(big.Int).Add(&forBlock, &forUncles))
		return append(appendBig(append(out, `},"totalFees":`...), fees), '}'), nil
	}
}

// fees is what the senders of the block's transactions paid for gas.
func (b *block) fees() (*big.Int, error) {
	total := new(big.Int)
	for i := range b.body.Len() {
		tx, err := b.transaction(i)
		if err != nil {
			return nil, err
		}
		receipt, err := b.receipts.Receipt(i)
		if err != nil {
			return nil, err
		}
		used, err := b.gasUsed(i, receipt.CumulativeGasUsed)
		if err != nil {
			return nil, err
		}
		price := tx.EffectiveGasPrice(b.baseFee)
		total.Add(total, new(big.Int).Mul(price.ToBig(), new(big.Int).SetUint64(used)))
	}
	return total, nil
}

// appendSlim appends the block without its transactions and its bloom, and without the
// brace that closes it.
func (b *block) appendSlim(out []byte) ([]byte, error) {
	out = appendBig(append(out, `{"number":`...), b.Number)
	out = appendHex(append(out, `,"hash":`...), b.Hash[:])
	out = appendHex(append(out, `,"nonce":`...), b.Nonce[:])
	out = appendHeaderRest(append(out, `,"logsBloom":null`...), b.Header.Header)
	out, err := b.appendUnclesAndWithdrawals(b.appendSize(out))
	return strconv.AppendInt(append(out, `,"transactionCount":`...), int64(b.body.Len()), 10), err
}

// blockTransactions answers ots_getBlockTransactions.
func (a *API) blockTransactions(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 3)
	id, page, size := plainBlock(&args, 0), parameter.Decode(&args, 1, parameter.ParseCount), parameter.Decode(&args, 2, parameter.ParseCount)
	if args.Err != nil {
		return out, args.Err
	}
	b, err := a.findWithReceipts(ctx, id)
	if b == nil || err != nil {
		return appendNull(out), err
	}
	defer b.release()
	hashes, err := a.hashes.of(b.Hash, &b.body)
	if err != nil {
		return out, err
	}
	count := uint64(b.body.Len())
	page, size = min(page, count), min(size, count)
	end := count - min(count, page*size)
	start := end - min(end, size)
	room := jsonrpc.RoomFor(ctx, out)
	if out, err = b.appendSlim(append(out, `{"fullblock":`...)); err != nil {
		return out, err
	}
	out, err = room.AppendArray(append(out, `,"transactions":`...), int(end-start), func(out []byte, i int) ([]byte, error) {
		i += int(start)
		return b.appendTransactionOf(out, i, hashes.hash(i), selectorBytes)
	})
	if err != nil {
		return out, err
	}
	out, err = room.AppendArray(append(out, `},"receipts":`...), int(end-start), func(out []byte, i int) ([]byte, error) {
		i += int(start)
		return b.appendReceiptOf(out, i, hashes.hash(i), true)
	})
	return append(out, '}'), err
}
