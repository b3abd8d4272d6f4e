package api

import (
	"context"
	"fmt"

	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// maxReceiptHashes bounds the transactions that a subscription to receipts names, as in
// geth.
const maxReceiptHashes = 200

var receiptFilterSchema = schema.Object(nil, schema.Members{"transactionHashes": schema.Array(eth.Hash)}).
	Named("ReceiptFilter", "The transactions whose receipts are wanted; all if there are none.")

// receiptFilter has the transactions whose receipts a subscriber wants; empty: all.
type receiptFilter map[common.Hash]struct{}

// receiptHashBytes is the memory of a transaction in a filter, as measured.
const receiptHashBytes = 80

// receiptFilterBytes is the memory of a filter without its transactions.
const receiptFilterBytes = 320

// bytes returns the memory of a filter.
func (f receiptFilter) bytes() int {
	if len(f) == 0 {
		return 0
	}
	return receiptFilterBytes + receiptHashBytes*len(f)
}

// parseReceiptFilter decodes the options of a subscription to receipts.
func parseReceiptFilter(raw []byte) (receiptFilter, error) {
	var hashes []common.Hash
	err := parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		if name.Is("transactionHashes") {
			return jsonrpc.Set(&hashes, value, parseList(parameter.ParseHash))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(hashes) > maxReceiptHashes {
		return nil, fmt.Errorf("transactionHashes: %d hashes, want at most %d", len(hashes), maxReceiptHashes)
	}
	filter := make(receiptFilter, len(hashes))
	for _, hash := range hashes {
		filter[hash] = struct{}{}
	}
	return filter, nil
}

// subscribeReceipts starts a subscription to transactionReceipts: a message for each added
// block with the receipts that match, if there are any.
func (p *publisher) subscribeReceipts(ctx context.Context, params []byte) (id string, err error) {
	args := parameter.Read(params, 2, 1)
	var filter receiptFilter
	if args.Given(1) {
		filter = parameter.Decode(&args, 1, parseReceiptFilter)
	}
	if args.Err != nil {
		return "", args.Err
	}
	caller, bytes := jsonrpc.CallerFrom(ctx), filter.bytes()
	if bytes > 0 && !p.logs.held.Take(caller, bytes) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many subscriptions: expected fewer transactions in them, or try again later"}
	}
	j := new(joiner)
	join := func(s *feed.Subscriber) {
		j.join = func() { p.receipts[s] = filter }
		p.join(j)
	}
	leave := func(s *feed.Subscriber) {
		p.cancelJoin(j)
		delete(p.receipts, s)
		p.logs.held.Give(caller, bytes)
	}
	if id, err = p.subscribe(ctx, join, leave); err != nil {
		p.logs.held.Give(caller, bytes)
	}
	return id, err
}

// publishReceipts publishes the receipts of an added block. Each is encoded once. mu is
// held.
func (p *publisher) publishReceipts(ctx context.Context, change query.Change) error {
	b, err := p.api.blockWithReceipts(ctx, change.View, change.Block.Number)
	if err != nil {
		return err
	}
	defer b.release()
	hashes, err := p.api.hashes.of(b.Hash, &b.body)
	if err != nil {
		return err
	}
	encoded := make([]encodedReceipt, b.body.Len())
	all := []byte{'['}
	for i := range b.body.Len() {
		hash := hashes.hash(i)
		if i > 0 {
			all = append(all, ',')
		}
		start := len(all)
		if all, err = b.appendReceipt(all, i, hash); err != nil {
			return err
		}
		encoded[i] = encodedReceipt{common.Hash(hash), all[start:len(all):len(all)]}
	}
	all = append(all, ']')
	for one, filter := range p.receipts {
		message := all
		if len(filter) > 0 {
			message = filter.matching(encoded)
		}
		if len(message) > len("[]") {
			one.Notify(message)
		}
	}
	return nil
}

// encodedReceipt is the receipt of a transaction as JSON.
type encodedReceipt struct {
	hash common.Hash
	json []byte
}

// matching returns a list of the receipts that are wanted.
func (f receiptFilter) matching(receipts []encodedReceipt) []byte {
	list := []byte{'['}
	for _, receipt := range receipts {
		if _, ok := f[receipt.hash]; ok {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, receipt.json...)
		}
	}
	return append(list, ']')
}
