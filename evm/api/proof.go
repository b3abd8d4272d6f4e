package api

import (
	"cmp"
	"context"
	"errors"

	"ashlar/eth"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// maxProofKeys is the maximum number of slots in a request of eth_getProof.
const maxProofKeys = 1024

// proofMethods describes eth_getProof.
func (a *API) proofMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{
		d.Method("eth_getProof", eth.Own{Handler: a.getProof, Cost: jsonrpc.Light(20), Result: proofSchema, Errors: blockErrors}),
	}
}

// getProof answers eth_getProof.
func (a *API) getProof(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 2)
	address := args.Address(0)
	keys, malformed := readStorageKeys(&args, 1)
	id := args.Block(2)
	if err := cmp.Or(args.Err, malformed); err != nil {
		return out, err
	}
	view, number, err := a.at(ctx, id)
	if err != nil {
		return out, err
	}
	proof, err := view.Prove(ctx, number, address, keys.slots)
	if err != nil {
		return out, err
	}
	return appendProof(out, address, keys, proof, jsonrpc.RoomFor(ctx, out))
}

// storageKeys are slots, and how to encode them in the answer.
type storageKeys struct {
	slots []common.Hash
	// whole says for each slot whether all 32 bytes were given. The answer then has all of
	// them; otherwise it has a quantity.
	whole []bool
}

// readStorageKeys decodes an array of slots. malformed is an error about their number or text, which
// follows those of the types of all arguments.
func readStorageKeys(args *parameter.Arguments, n int) (keys storageKeys, malformed error) {
	if args.Err != nil {
		return keys, nil
	}
	elements, ok := jsonrpc.Array(args.Raw(n))
	if !ok {
		args.Fail(n, errors.New("non-array value, want an array of storage keys"))
		return keys, nil
	}
	count := 0
	for ; elements.Next(); count++ {
		if count >= maxProofKeys || args.Err != nil {
			continue
		}
		slot, err := args.ParseKey(n, elements.Value())
		malformed = cmp.Or(malformed, err)
		text, _ := jsonrpc.String(elements.Value())
		if parameter.HasPrefix(text) {
			text = text[2:]
		}
		keys.slots = append(keys.slots, slot)
		keys.whole = append(keys.whole, (len(text)+1)/2 == common.HashLength)
	}
	if count > maxProofKeys {
		malformed = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "too many storage keys requested (max %d, got %d)", maxProofKeys, count)
	}
	return keys, malformed
}

// appendProof appends a proof. As in geth, a missing account has zero hashes instead of the
// hashes of empty values.
func appendProof(out []byte, address common.Address, keys storageKeys, proof *query.Proof, room jsonrpc.Room) ([]byte, error) {
	account := proof.Account
	if account == nil {
		account = &types.StateAccount{Balance: new(uint256.Int), CodeHash: make([]byte, common.HashLength)}
	}
	out = append(out, `{"address":`...)
	out = appendHex(out, address[:])
	out = jsonrpc.AppendArray(append(out, `,"accountProof":`...), proof.Nodes, appendHex)
	out = append(out, `,"balance":`...)
	out = appendUint256(out, account.Balance)
	out = append(out, `,"codeHash":`...)
	out = appendHex(out, account.CodeHash)
	out = append(out, `,"nonce":`...)
	out = appendQuantity(out, account.Nonce)
	out = append(out, `,"storageHash":`...)
	out = appendHex(out, account.Root[:])
	out, err := room.AppendArray(append(out, `,"storageProof":`...), len(proof.Slots), func(out []byte, i int) ([]byte, error) {
		slot := &proof.Slots[i]
		out = append(out, `{"key":`...)
		if keys.whole[i] {
			out = appendHex(out, keys.slots[i][:])
		} else {
			out = appendQuantityBytes(out, keys.slots[i][:])
		}
		out = append(out, `,"value":`...)
		out = appendQuantityBytes(out, slot.Value[:])
		out = jsonrpc.AppendArray(append(out, `,"proof":`...), slot.Nodes, appendHex)
		return append(out, '}'), nil
	})
	return append(out, '}'), err
}
