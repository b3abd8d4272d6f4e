package api

import (
	"context"
	"errors"
	"fmt"

	"ashlar/eth"
	"ashlar/evm/archive"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// errNoAccessList is the answer for a block before Amsterdam.
var errNoAccessList = &jsonrpc.Error{Code: jsonrpc.CodeNotFound, Message: "Resource not found", Data: "the block is from before Amsterdam and has no access list"}

// The schemas of a block's access list.
var (
	changeOf = func(name string, value *schema.Schema) *schema.Schema {
		return schema.Array(schema.Object(schema.Members{"index": eth.Quantity, name: value}, nil))
	}
	blockAccessListSchema = schema.Array(schema.Object(schema.Members{
		"address": eth.Address, "storageReads": schema.Array(eth.Hash),
		"storageChanges": schema.Array(schema.Object(schema.Members{"key": eth.Hash, "changes": changeOf("value", eth.Hash)}, nil)),
		"balanceChanges": changeOf("value", eth.Quantity), "nonceChanges": changeOf("value", eth.Quantity), "codeChanges": changeOf("code", eth.Data),
	}, nil)).Named("BlockAccessList", "The accounts and slots that a block accesses, and their values after each transaction that changes them (EIP-7928). "+
		"Index 0 is before the block's transactions, index n is transaction n, counted from 1, and the last index is after them.")
)

// accessListMethods describes the methods that return the access lists of blocks. A list
// contains values of any contract.
func (a *API) accessListMethods() []jsonrpc.Method {
	block := eth.Required("Block", "The block.", eth.Block, a.listedBlock)
	return []jsonrpc.Method{
		{
			Name: "eth_getBlockAccessList", Summary: "Returns the access list of a block.",
			Params: []jsonrpc.Param{block}, Result: eth.Result("Block access list", schema.OrNull(blockAccessListSchema)),
			Errors: append([]*jsonrpc.Error{errNoAccessList}, namedBlockErrors...),
			Cost:   jsonrpc.Heavy(50), Concerns: jsonrpc.AnyContract, Handler: a.getBlockAccessList(appendAccessList, "null"),
		},
		{
			Name: "debug_getRawBlockAccessList", Summary: "Returns the encoding of a block's access list.",
			Params: []jsonrpc.Param{block}, Result: eth.Result("Block access list RLP", eth.Data),
			Errors: append([]*jsonrpc.Error{errNoAccessList}, namedBlockErrors...),
			Cost:   jsonrpc.Light(20), Concerns: jsonrpc.AnyContract, Handler: a.getBlockAccessList(appendRawAccessList, noBytes),
		},
	}
}

// listedBlock returns a block parameter for examples: the head, or the block after it while
// no block has a list, since a pending block is not an error.
func (a *API) listedBlock(ctx context.Context) (any, error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, err
	}
	head := view.Head().Number
	header, err := view.Header(ctx, head)
	if err == nil && header.BlockAccessListHash == nil {
		head++
	}
	return hexutil.Uint64(head), err
}

// getBlockAccessList answers with an encoding of a block's access list, or with missing if
// the block does not exist.
func (a *API) getBlockAccessList(encode func(ctx context.Context, out, list []byte) ([]byte, error), missing string) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, 1, 1)
		id := args.Block(0)
		if args.Err != nil {
			return out, args.Err
		}
		view, number, err := a.at(ctx, id)
		if unknown(err) || err == nil && view.IsPending(number) { // which has not run yet
			return append(out, missing...), nil
		}
		if err != nil {
			return out, err
		}
		list, err := view.BlockAccessList(ctx, number)
		if errors.Is(err, archive.ErrNotFound) {
			return out, errNoAccessList
		}
		if err != nil {
			return out, err
		}
		return encode(ctx, out, list)
	}
}

func appendRawAccessList(_ context.Context, out, list []byte) ([]byte, error) {
	return appendHex(out, list), nil
}

// appendAccessList appends an access list, given as RLP.
func appendAccessList(ctx context.Context, out, encoded []byte) ([]byte, error) {
	var list bal.BlockAccessList
	if err := rlp.DecodeBytes(encoded, &list); err != nil {
		return out, fmt.Errorf("%w: access_lists row: %v", archive.ErrCorrupt, err)
	}
	return jsonrpc.RoomFor(ctx, out).AppendArray(out, len(list), func(out []byte, i int) ([]byte, error) {
		return appendAccountAccess(out, &list[i]), nil
	})
}

func appendAccountAccess(out []byte, a *bal.AccountAccess) []byte {
	out = append(out, `{"address":`...)
	out = appendHex(out, a.Address[:])
	out = append(out, `,"storageChanges":[`...)
	for i, slot := range a.StorageChanges {
		out = append(appendComma(out, i), `{"key":`...)
		out = append(appendWord(out, slot.Slot), `,"changes":[`...)
		for j, change := range slot.SlotChanges {
			out = appendIndex(appendComma(out, j), change.BlockAccessIndex)
			out = append(appendWord(append(out, `,"value":`...), change.PostValue), '}')
		}
		out = append(out, "]}"...)
	}
	out = append(out, `],"storageReads":[`...)
	for i, slot := range a.StorageReads {
		out = appendWord(appendComma(out, i), slot)
	}
	out = append(out, `],"balanceChanges":[`...)
	for i, change := range a.BalanceChanges {
		out = appendIndex(appendComma(out, i), change.BlockAccessIndex)
		out = append(appendUint256(append(out, `,"value":`...), change.PostBalance), '}')
	}
	out = append(out, `],"nonceChanges":[`...)
	for i, change := range a.NonceChanges {
		out = appendIndex(appendComma(out, i), change.BlockAccessIndex)
		out = append(appendQuantity(append(out, `,"value":`...), change.PostNonce), '}')
	}
	out = append(out, `],"codeChanges":[`...)
	for i, change := range a.CodeChanges {
		out = appendIndex(appendComma(out, i), change.BlockAccessIndex)
		out = append(appendHex(append(out, `,"code":`...), change.NewCode), '}')
	}
	return append(out, "]}"...)
}

// appendIndex appends the start of a change, with the index of its transaction.
func appendIndex(out []byte, index uint32) []byte {
	return appendQuantity(append(out, `{"index":`...), uint64(index))
}

// appendWord appends a word of storage with all its digits.
func appendWord(out []byte, word *uint256.Int) []byte {
	digits := word.Bytes32()
	return appendHex(out, digits[:])
}

// appendComma appends a comma before every item but the first.
func appendComma(out []byte, i int) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	return out
}
