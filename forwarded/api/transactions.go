package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// transactionMethods describes the methods about transactions and receipts.
func (a *API) transactionMethods(d *eth.Description) []jsonrpc.Method {
	found := func(name string) jsonrpc.Method {
		return d.Method(name, eth.Own{Handler: a.lookup(name), Result: nodesResult})
	}
	return []jsonrpc.Method{
		found("eth_getTransactionByHash"),
		d.Method("eth_getTransactionByBlockHashAndIndex", eth.Own{Handler: a.ofHash("eth_getTransactionByBlockHashAndIndex", 2, nil), Result: nodesResult}),
		d.Method("eth_getTransactionByBlockNumberAndIndex", eth.Own{
			Handler: a.ofNumber(named{"eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex", 2, nil}), Result: nodesResult,
		}),
		found("eth_getTransactionReceipt"),
		d.Method("eth_sendRawTransaction", eth.Own{Handler: a.send, Cost: jsonrpc.Light(100), ExampleFails: "it sends no transaction"}),
	}
}

// send answers eth_sendRawTransaction.
func (a *API) send(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	if args.Err != nil {
		return out, args.Err
	}
	answer, err := a.chain.Send(ctx, replaced(&args, 0, string(args.Raw(0))))
	if errors.Is(err, upstream.ErrKnown) {
		if hash, ok := hashOf(args.Raw(0)); ok {
			return fmt.Appendf(out, `"%#x"`, hash), nil
		}
	}
	switch {
	case errors.Is(err, upstream.ErrUncertain):
		return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: upstream.Unconfirmed(err).Error()}
	case err != nil:
		return out, err
	}
	return appendResult(ctx, out, answer)
}

// hashOf returns the hash of a transaction in binary form, if its type is one of Ethereum's. Chains have others.
func hashOf(param json.RawMessage) (hash common.Hash, ok bool) {
	var raw hexutil.Bytes
	tx := new(types.Transaction)
	if json.Unmarshal(param, &raw) != nil || tx.UnmarshalBinary(raw) != nil {
		return hash, false
	}
	return tx.Hash(), true
}
