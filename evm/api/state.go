package api

import (
	"cmp"
	"context"
	"fmt"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// stateMethods describes the methods about accounts and their storage.
func (a *API) stateMethods(d *eth.Description) []jsonrpc.Method {
	account := []jsonrpc.Param{d.Address, eth.Optional(d.State)}
	return []jsonrpc.Method{
		d.Method("eth_getBalance", eth.Own{Handler: a.getBalance, Errors: blockErrors}),
		d.Method("eth_getCode", eth.Own{Handler: a.getCode, Errors: blockErrors}),
		d.Method("eth_getTransactionCount", eth.Own{Handler: a.getTransactionCount, Errors: blockErrors}),
		{
			Name: "eth_getAccount", Summary: "Returns an account as the state trie has it: balance, nonce, code hash and storage root.",
			Params: account, Errors: blockErrors,
			Result: eth.Result("Account", schema.OrNull(accountSchema)),
			Cost:   jsonrpc.Light(10), Concerns: parameter.Concerning(eth.FirstAddress), Handler: a.getAccount,
		},
		{
			Name: "eth_getAccountInfo", Summary: "Returns the balance, the nonce and the code of an account.",
			Params: account, Errors: blockErrors,
			Result: eth.Result("Account info", schema.Object(schema.Members{"balance": eth.Quantity, "nonce": eth.Quantity, "code": eth.Data}, nil)),
			Cost:   jsonrpc.Light(20), Concerns: parameter.Concerning(eth.FirstAddress), Handler: a.getAccountInfo,
		},
		d.Method("eth_getStorageAt", eth.Own{Handler: a.getStorageAt, Errors: blockErrors}),
		{
			Name: "eth_getStorageValues", Summary: "Returns the values of many storage slots of many contracts.",
			Params: []jsonrpc.Param{
				eth.Required("Requests", "The slots of each contract, by its address.", schema.Map(schema.Array(eth.Hash)),
					a.example(func(s *sample) any { return map[common.Address][]common.Hash{s.contract: {{}}} })),
				eth.Optional(d.State),
			},
			Result: eth.Result("Values", schema.Map(schema.Array(eth.Hash))), Errors: append(errorsOf(errTooManySlots(), errNoSlots), blockErrors...),
			Cost: jsonrpc.Light(20), Concerns: parameter.Concerning(contractsRead), Handler: a.getStorageValues,
		},
	}
}

var accountSchema = schema.Object(schema.Members{
	"balance": eth.Quantity, "nonce": eth.Quantity, "codeHash": eth.Hash, "storageRoot": eth.Hash,
}, nil).Named("Account", "An account without its code and its slots, of which it has hashes.")

// contractsRead returns the contracts whose slots a call of eth_getStorageValues reads.
func contractsRead(params []byte) (about []common.Address, err error) {
	args := parameter.Read(params, parameter.MaxArguments, 1)
	for _, account := range parameter.Decode(&args, 0, parseAccountSlots) {
		about = append(about, account.address)
	}
	return about, args.Err
}

// stateAt returns the state after the block that id names.
func (a *API) stateAt(ctx context.Context, id chain.BlockID) (evm.State, error) {
	view, number, err := a.at(ctx, id)
	if err != nil {
		return nil, err
	}
	return view.State(number), nil
}

// account decodes an address and an optional block. It returns the account after that
// block, nil if it does not exist, and the state.
func (a *API) account(ctx context.Context, params []byte) (*types.StateAccount, evm.State, error) {
	args := parameter.Read(params, 2, 1)
	address, id := args.Address(0), args.Block(1)
	if args.Err != nil {
		return nil, nil, args.Err
	}
	return a.accountAt(ctx, address, id)
}

// accountAt returns an account after a block, nil if it does not exist, and the state.
func (a *API) accountAt(ctx context.Context, address common.Address, id chain.BlockID) (*types.StateAccount, evm.State, error) {
	state, err := a.stateAt(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	account, err := state.Account(ctx, evm.AccountKey(state, address))
	return account, state, err
}

// getBalance answers eth_getBalance.
func (a *API) getBalance(ctx context.Context, params, out []byte) ([]byte, error) {
	account, _, err := a.account(ctx, params)
	if err != nil {
		return out, err
	}
	if account == nil {
		return appendQuantity(out, 0), nil
	}
	return appendUint256(out, account.Balance), nil
}

// getTransactionCount answers eth_getTransactionCount: the account's nonce.
func (a *API) getTransactionCount(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	address, id := args.Address(0), args.Block(1)
	if args.Err != nil {
		return out, args.Err
	}
	if nonce, ok, err := a.pendingNonce(ctx, id, address); ok || err != nil {
		return appendQuantity(out, nonce), err
	}
	account, _, err := a.account(ctx, params)
	if err != nil {
		return out, err
	}
	if account == nil {
		return appendQuantity(out, 0), nil
	}
	return appendQuantity(out, account.Nonce), nil
}

// getCode answers eth_getCode.
func (a *API) getCode(ctx context.Context, params, out []byte) ([]byte, error) {
	account, state, err := a.account(ctx, params)
	if err != nil {
		return out, err
	}
	if account == nil {
		return appendHex(out, nil), nil
	}
	code, err := state.Code(ctx, common.BytesToHash(account.CodeHash))
	if err != nil {
		return out, err
	}
	return appendHex(out, code), nil
}

// getAccount answers eth_getAccount. As in reth and Nethermind, a missing account is null.
func (a *API) getAccount(ctx context.Context, params, out []byte) ([]byte, error) {
	account, _, err := a.account(ctx, params)
	if account == nil || err != nil {
		return appendNull(out), err
	}
	out = appendUint256(append(out, `{"balance":`...), account.Balance)
	out = appendQuantity(append(out, `,"nonce":`...), account.Nonce)
	out = appendHex(append(out, `,"codeHash":`...), account.CodeHash)
	return append(appendHex(append(out, `,"storageRoot":`...), account.Root[:]), '}'), nil
}

// getAccountInfo answers eth_getAccountInfo. As in reth, a missing account has zero values.
func (a *API) getAccountInfo(ctx context.Context, params, out []byte) ([]byte, error) {
	account, state, err := a.account(ctx, params)
	if err != nil {
		return out, err
	}
	if account == nil {
		account = types.NewEmptyStateAccount()
	}
	var code []byte
	if hash := common.BytesToHash(account.CodeHash); hash != types.EmptyCodeHash {
		if code, err = state.Code(ctx, hash); err != nil {
			return out, err
		}
	}
	out = appendUint256(append(out, `{"balance":`...), account.Balance)
	out = appendQuantity(append(out, `,"nonce":`...), account.Nonce)
	return append(appendHex(append(out, `,"code":`...), code), '}'), nil
}

// getStorageAt answers eth_getStorageAt.
func (a *API) getStorageAt(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 3, 2)
	address := args.Address(0)
	key, malformed := args.StorageKey(1)
	id := args.Block(2)
	if args.Err != nil {
		return out, args.Err
	}
	state, err := a.stateAt(ctx, id)
	if err = cmp.Or(err, malformed); err != nil {
		return out, err
	}
	value, err := state.Slot(ctx, evm.AccountKey(state, address), evm.SlotKey(state, key))
	if err != nil {
		return out, err
	}
	return appendHex(out, value[:]), nil
}

// maxStorageValues is the maximum number of slots of eth_getStorageValues, as in geth.
const maxStorageValues = 1024

// accountSlots are the requested slots of one account.
type accountSlots struct {
	address common.Address
	keys    []common.Hash
}

// getStorageValues answers eth_getStorageValues.
func (a *API) getStorageValues(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	wanted, id := parameter.Decode(&args, 0, parseAccountSlots), args.Block(1)
	if args.Err != nil {
		return out, args.Err
	}
	if err := checkSlotCount(wanted); err != nil { // after the types of all arguments, as in geth
		return out, err
	}
	state, err := a.stateAt(ctx, id)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '{')
	for i, account := range wanted {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendHex(out, account.address[:]), ':')
		hashed := evm.AccountKey(state, account.address)
		out, err = room.AppendArray(out, len(account.keys), func(out []byte, i int) ([]byte, error) {
			value, err := state.Slot(ctx, hashed, evm.SlotKey(state, account.keys[i]))
			return appendHash(out, value), err
		})
		if err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// parseAccountSlots decodes an object that maps addresses to arrays of keys. If an address
// occurs twice, the last one wins. Of an array with too many keys, one too many is returned.
func parseAccountSlots(raw []byte) ([]accountSlots, error) {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return nil, fmt.Errorf("want an object of addresses, each with an array of storage keys")
	}
	var wanted []accountSlots
	places := make(map[common.Address]int)
	for members.Next() {
		address, err := parameter.ParseAddressText(members.Name())
		if err != nil {
			return nil, err
		}
		keys, err := parseHashes(members.Value(), maxStorageValues+1)
		if err != nil {
			return nil, err
		}
		if i, twice := places[address]; twice {
			wanted[i].keys = keys
			continue
		}
		places[address] = len(wanted)
		wanted = append(wanted, accountSlots{address, keys})
	}
	return wanted, nil
}

// checkSlotCount returns an error for no slots, or too many.
func checkSlotCount(wanted []accountSlots) error {
	total := 0
	for _, account := range wanted {
		total += len(account.keys)
	}
	switch {
	case total > maxStorageValues:
		return errTooManySlots()
	case total == 0:
		return errNoSlots
	}
	return nil
}

var errNoSlots = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "empty request"}

func errTooManySlots() error {
	return jsonrpc.Errorf(jsonrpc.CodeClientLimit, "too many slots (max %d)", maxStorageValues)
}

// parseHashes decodes an array of hashes. It returns the first ones, at most limit.
func parseHashes(raw []byte, limit int) ([]common.Hash, error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, fmt.Errorf("want an array of hashes")
	}
	var hashes []common.Hash
	for elements.Next() {
		hash, err := parameter.ParseHash(elements.Value())
		if err != nil {
			return nil, err
		}
		if len(hashes) < limit {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}
