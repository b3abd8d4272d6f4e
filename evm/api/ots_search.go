package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// maxSearchedPage is the largest page size of a search for transactions.
const maxSearchedPage = 100

// errNoTraceIndex means that a network has no trace index. By its first words, proxies send the method elsewhere.
var errNoTraceIndex = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the method is not available: this network has no trace index: it is made if the network is imported with trace_index"}

// searchMethods describes the methods that search the transactions of an address.
func (a *API) searchMethods(d *eth.Description) []jsonrpc.Method {
	number := eth.Required("Block number", "The number of a block, which is not searched itself. 0 searches the whole chain.", schema.AnyOf(eth.BlockNumber, schema.Unsigned), jsonrpc.Given(0))
	size := eth.Required("Page size", "How many transactions are wanted. All transactions of a block are on the same page, so there may be more.", schema.Unsigned, jsonrpc.Given(25))
	params := []jsonrpc.Param{d.Address, number, size}
	errs := append(errorsOf(errNoTraceIndex, errPageSize(maxSearchedPage+1)), blockErrors...)
	found := eth.Result("Transactions", searchedSchema)
	return []jsonrpc.Method{
		{
			Name:    "ots_searchTransactionsBefore",
			Summary: "Returns the last transactions before a block in which an address takes part, newest first: as sender or recipient, or by calls inside of them.",
			Params:  params, Result: found, Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.searchTransactions(searchBefore),
		},
		{
			Name:    "ots_searchTransactionsAfter",
			Summary: "Returns the first transactions after a block in which an address takes part, newest first: as sender or recipient, or by calls inside of them.",
			Params:  params, Result: found, Errors: errs,
			Cost: jsonrpc.Heavy(100), Concerns: jsonrpc.AnyContract, Handler: a.searchTransactions(searchAfter),
		},
	}
}

var searchedSchema = schema.Object(schema.Members{
	"txs":       schema.Array(transactionSchema),
	"receipts":  schema.Array(schema.Object(schema.Members{"transactionHash": eth.Hash, "timestamp": schema.Unsigned}, nil)),
	"firstPage": schema.Boolean, "lastPage": schema.Boolean,
}, nil).Named("SearchedTransactions", "Transactions with their receipts and times. The first page has the newest, the last page the oldest.")

func errPageSize(size uint64) *jsonrpc.Error {
	return jsonrpc.InvalidArgument(2, fmt.Sprintf("page size %d is too large (want at most %d)", size, maxSearchedPage))
}

// searched is a page of transactions, newest block first.
type searched struct {
	blocks      []query.BlockTransactions
	first, last bool // the page has the newest transactions; the oldest
}

// A search finds a page of transactions of an address on one side of a block.
type search func(ctx context.Context, view *query.View, address common.Address, block uint64, size int) (searched, error)

func searchBefore(ctx context.Context, view *query.View, address common.Address, block uint64, size int) (s searched, err error) {
	s.first = block == 0
	last := block - 1 // of block 0: the head
	s.blocks, s.last, err = view.TransactionsBefore(ctx, address, last, size)
	s.last = !s.last
	return s, err
}

func searchAfter(ctx context.Context, view *query.View, address common.Address, block uint64, size int) (s searched, err error) {
	s.last = block == 0
	s.blocks, s.first, err = view.TransactionsAfter(ctx, address, min(block, math.MaxUint64-1)+1, size)
	s.first = !s.first
	slices.Reverse(s.blocks)
	return s, err
}

// searchTransactions answers ots_searchTransactionsBefore and ots_searchTransactionsAfter.
func (a *API) searchTransactions(search search) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 3, 3)
		address, id, size := args.Address(0), plainBlock(&args, 1), parameter.Decode(&args, 2, parameter.ParseCount)
		if args.Err != nil {
			return out, args.Err
		}
		if size > maxSearchedPage {
			return out, errPageSize(size)
		}
		view, err := a.chain.View()
		if err != nil {
			return out, err
		}
		if !view.HasTraces() {
			return out, errNoTraceIndex
		}
		number, err := searchedFrom(ctx, view, id)
		if err != nil {
			return out, err
		}
		found, err := search(ctx, view, address, number, int(size))
		if err != nil {
			return out, err
		}
		return a.appendSearched(ctx, view, &found, out)
	}
}

// searchedFrom returns the block at which a search begins. It may be above the head.
func searchedFrom(ctx context.Context, view *query.View, id chain.BlockID) (uint64, error) {
	if id.Tag == chain.NoTag && id.Hash == nil {
		return id.Number, nil
	}
	_, number, err := view.Resolve(ctx, id)
	return number, err
}

// appendSearched appends a page of transactions.
func (a *API) appendSearched(ctx context.Context, view *query.View, found *searched, out []byte) ([]byte, error) {
	transactions := jsonrpc.NewList(append(out, `{"txs":[`...), jsonrpc.RoomFor(ctx, out))
	receipts := jsonrpc.NewList(nil, jsonrpc.RoomFor(ctx, nil))
	for _, block := range found.blocks {
		if err := a.addSearched(ctx, view, block, &transactions, &receipts); err != nil {
			return out, err
		}
	}
	out = append(append(transactions.Bytes(), `],"receipts":[`...), receipts.Bytes()...)
	out = strconv.AppendBool(append(out, `],"firstPage":`...), found.first)
	out = strconv.AppendBool(append(out, `,"lastPage":`...), found.last)
	return append(out, '}'), jsonrpc.RoomFor(ctx, out).Check(len(out))
}

// addSearched adds transactions of a block and their receipts, the last one first.
func (a *API) addSearched(ctx context.Context, view *query.View, found query.BlockTransactions, transactions, receipts *jsonrpc.List) error {
	b, err := a.blockWithReceipts(ctx, view, found.Number)
	if err != nil {
		return err
	}
	defer b.release()
	hashes, err := a.hashes.of(b.Hash, &b.body)
	if err != nil {
		return err
	}
	for _, i := range slices.Backward(found.Indices) {
		if i >= b.body.Len() {
			return errors.New("the trace index names a transaction that the block does not have")
		}
		transaction, err := b.appendTransaction(transactions.Next(), i, hashes.hash(i))
		if err != nil {
			return err
		}
		if err := transactions.Add(transaction); err != nil {
			return err
		}
		receipt, err := b.appendReceipt(receipts.Next(), i, hashes.hash(i))
		if err != nil {
			return err
		}
		receipt = append(receipt[:len(receipt)-1], `,"timestamp":`...) // without its brace
		if err := receipts.Add(append(strconv.AppendUint(receipt, b.Time, 10), '}')); err != nil {
			return err
		}
	}
	return nil
}
