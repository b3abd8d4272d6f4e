package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// How long eth_sendRawTransactionSync waits, as in geth. The time of the request ends it in
// any case.
const (
	defaultSyncTime = 20 * time.Second
	maxSyncTime     = time.Minute
)

// syncMethods describes the method that sends a transaction and waits for its receipt.
func (a *API) syncMethods() []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_sendRawTransactionSync", Summary: "Takes a signed transaction to be included, waits for its block, and returns its receipt (EIP-7966).",
		ExampleFails: includedExample,
		Params: []jsonrpc.Param{
			eth.Required("Transaction", "The transaction's encoding.", eth.Data, a.example(func(s *sample) any { return s.raw })),
			{Name: "Timeout", Summary: "How long to wait in milliseconds: 20,000 by default, and at most 60,000.", Schema: schema.AnyOf(schema.Unsigned, eth.Number)},
		},
		Result: eth.Result("Receipt", receiptSchema),
		Errors: append(errorsOf(errTakesNone, errNotIncluded(defaultSyncTime, common.Hash{})), sendErrors()...),
		Cost:   jsonrpc.Light(60), Concerns: jsonrpc.NoContract, Handler: a.sendRawTransactionSync,
	}}
}

func errNotIncluded(after time.Duration, hash common.Hash) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeNotIncluded, Data: hexutil.Encode(hash[:]),
		Message: fmt.Sprintf("The transaction was added to the transaction pool but wasn't processed in %v", after),
	}
}

// sendRawTransactionSync answers eth_sendRawTransactionSync.
func (a *API) sendRawTransactionSync(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	raw, wait := args.Bytes(0), defaultSyncTime
	if args.Given(1) {
		if asked := parameter.Decode(&args, 1, parameter.ParseCount); asked > 0 {
			wait = maxSyncTime
			if asked < uint64(maxSyncTime/time.Millisecond) {
				wait = time.Duration(asked) * time.Millisecond
			}
		}
	}
	if args.Err != nil {
		return out, args.Err
	}
	hash, err := a.submit(ctx, raw)
	if err != nil {
		return out, err
	}
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	receipt, err := a.awaitReceipt(waiting, hash, out)
	switch {
	case receipt != nil:
		return receipt, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return out, ctx.Err()
	case err != nil && waiting.Err() == nil:
		return out, err
	case ctx.Err() != nil: // the time of the request was shorter
		wait = time.Since(began).Round(time.Millisecond)
	}
	return out, errNotIncluded(wait, hash)
}

// errFound ends the wait for a receipt.
var errFound = errors.New("found")

// awaitReceipt appends the receipt of a transaction to out once a block has it. It returns
// nil if ctx is done before.
func (a *API) awaitReceipt(ctx context.Context, hash common.Hash, out []byte) (receipt []byte, err error) {
	err = a.chain.EachMove(ctx, func(ctx context.Context) error {
		view, err := a.chain.View()
		if err != nil {
			return err
		}
		b, index, err := findBy(ctx, view.FindStoredTransaction, view, hash, a.blockWithReceipts)
		if b == nil || err != nil {
			return err
		}
		defer b.release()
		if receipt, err = b.appendReceipt(out, index, hash[:]); err != nil {
			return err
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return receipt, nil
	}
	return nil, err
}
