package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	// maxRangeAccounts is how many accounts debug_accountRange returns, as in geth.
	maxRangeAccounts = 256
	// maxModifiedBlocks is how many blocks debug_getModifiedAccounts* executes.
	maxModifiedBlocks = 1024
)

// rangeMethods describes the methods that list accounts and slots, by their hashes.
func (a *API) rangeMethods(d *eth.Description) []jsonrpc.Method {
	flag := func(name, summary string) jsonrpc.Param {
		return eth.Required(name, summary, schema.Boolean, jsonrpc.Given(true))
	}
	start := eth.Required("Start", "The first hash, or its beginning.", eth.Data, jsonrpc.Given("0x"))
	limit := eth.Required("Limit", "The largest number of entries to return.", schema.Unsigned, jsonrpc.Given(16))
	modified := eth.Result("Addresses", schema.OrNull(schema.Array(eth.Address)))
	absent := []error{unknownEnd("start", chain.BlockID{Number: 9}, "%x"), unknownEnd("end", chain.BlockID{Number: 9}, "%d")}
	errs := errorsOf(append(absent, errTooManyBlocks(maxModifiedBlocks+1), errNotBefore(2, 1), evm.ErrMissing)...)
	return []jsonrpc.Method{
		{
			Name: "debug_storageRangeAt", Summary: "Returns slots of a contract before a block, in the order of their hashes.",
			Params: []jsonrpc.Param{d.Block, eth.Required("Transaction index", "Must be that of a transaction of the block.", schema.Unsigned, jsonrpc.Given(0)), d.Address, start, limit},
			Result: eth.Result("Slots", storageRangeSchema), Errors: blockErrors,
			Cost: jsonrpc.Heavy(50), Concerns: parameter.Concerning(rangedContract), Handler: a.storageRange,
		},
		{
			Name: "debug_accountRange", Summary: "Returns accounts after a block, in the order of the hashes of their addresses.",
			Params: []jsonrpc.Param{
				d.State, start, limit, flag("No code", "Leaves out code."), flag("No storage", "Leaves out storage."),
				flag("Incomplete", "Ignored: accounts are always listed, by hash, although their addresses are not stored."),
			},
			Result: eth.Result("Accounts", accountRangeSchema), Errors: existingErrors,
			Cost: jsonrpc.Heavy(200), Concerns: jsonrpc.AnyContract, Handler: a.accountRange,
		},
		{
			Name: "debug_getModifiedAccountsByNumber", Summary: "Returns the accounts that changed in a block, or between two blocks.",
			Params: []jsonrpc.Param{
				eth.Required("Start", "The block, or the one before the first of the range.", schema.Unsigned, a.example(func(s *sample) any { return s.block.Number })),
				{Name: "End", Summary: "The last block of the range.", Schema: schema.Unsigned},
			},
			Result: modified, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.modifiedByNumber,
		},
		{
			Name: "debug_getModifiedAccountsByHash", Summary: "Returns the accounts that changed in a block, or between two blocks.",
			Params: []jsonrpc.Param{d.BlockHash, jsonrpc.Param{Name: "End", Summary: "The hash of the last block of the range.", Schema: eth.Hash}},
			Result: modified, Errors: errs,
			Cost: jsonrpc.Heavy(500), Concerns: jsonrpc.AnyContract, Handler: a.modifiedByHash,
		},
	}
}

// The schemas of ranges.
var (
	storageRangeSchema = schema.Object(schema.Members{
		"storage": schema.OrNull(schema.Map(schema.Object(schema.Members{"key": schema.Null, "value": eth.Hash}, nil))),
		"nextKey": schema.OrNull(eth.Hash),
	}, nil).Named("StorageRange", "Slots by their hash. A key is null: only its hash is stored.")
	accountRangeSchema = schema.Object(schema.Members{"root": schema.String, "accounts": schema.Map(schema.Object(schema.Members{
		"balance": schema.String, "nonce": schema.Unsigned, "root": eth.Hash, "codeHash": eth.Hash, "key": eth.Hash,
	}, schema.Members{"code": eth.Data, "storage": schema.Map(schema.String)}))}, schema.Members{"next": eth.Hash}).
		Named("AccountRange", "Accounts by `pre(0x…)` with the hash of the address; slots by their hash.")
)

// rangedContract returns the contract of debug_storageRangeAt.
func rangedContract(params []byte) ([]common.Address, error) {
	args := parameter.Read(params, 5, 5)
	address := args.Address(2)
	return []common.Address{address}, args.Err
}

// parseStart decodes the beginning of a range of hashes.
func parseStart(raw []byte) (common.Hash, error) {
	start, err := parameter.ParseBytes(raw)
	if err == nil && len(start) > common.HashLength {
		err = fmt.Errorf("data of %d bytes (want at most %d)", len(start), common.HashLength)
	}
	var hash common.Hash
	copy(hash[:], start)
	return hash, err
}

// parsePlain decodes a number that is not a text.
func parsePlain(raw []byte) (uint64, error) {
	number, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, errors.New("want a number that is not negative")
	}
	return number, nil
}

// storageRange answers debug_storageRangeAt. As in geth, what the earlier transactions of
// the block changed is not included.
func (a *API) storageRange(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 5, 5)
	id, index, address := args.Block(0), parameter.Decode(&args, 1, parsePlain), args.Address(2)
	start, limit := parameter.Decode(&args, 3, parseStart), parameter.Decode(&args, 4, parsePlain)
	if args.Err != nil {
		return out, args.Err
	}
	view, number, err := a.at(ctx, id)
	if err != nil {
		return out, err
	}
	if err := checkTransactionIndex(ctx, view, number, index); err != nil {
		return out, err
	}
	state := view.State(number - 1)
	hash := evm.AccountKey(state, address)
	account, err := state.Account(ctx, hash)
	if err != nil {
		return out, err
	}
	if account == nil || account.Root == types.EmptyRootHash {
		return append(out, `{"storage":null,"nextKey":null}`...), nil
	}
	room, next := jsonrpc.RoomFor(ctx, out), []byte("null")
	out = append(out, `{"storage":{`...)
	count := uint64(0)
	err = view.EachSlot(ctx, number-1, hash, account.Root, start, func(slot, value common.Hash) (bool, error) {
		if count == limit {
			next = appendHash(nil, slot)
			return false, nil
		}
		if count++; count > 1 {
			out = append(out, ',')
		}
		out = appendHash(append(appendHash(out, slot), `:{"key":null,"value":`...), value)
		out = append(out, '}')
		return true, room.Check(len(out))
	})
	return append(append(append(out, `},"nextKey":`...), next...), '}'), err
}

// checkTransactionIndex refuses a position that is not one of a block, in geth's words.
func checkTransactionIndex(ctx context.Context, view *query.View, number, index uint64) error {
	if number == 0 {
		return &trace.Error{Err: errors.New("no transaction in genesis")}
	}
	header, err := view.Header(ctx, number)
	if err != nil {
		return err
	}
	body, held, err := view.HoldBody(ctx, number)
	if err != nil {
		return err
	}
	count := uint64(body.Len())
	if err := held.Close(); err != nil {
		return err
	}
	return checkIndex(index, count, header.Hash)
}

// checkIndex refuses an index beyond the count transactions of a block. A block without
// transactions has the index 0, as in geth.
func checkIndex(index, count uint64, block common.Hash) error {
	if index >= max(count, 1) {
		return &trace.Error{Err: fmt.Errorf("transaction index %d out of range for block %#x", index, block)}
	}
	return nil
}

// accountRange answers debug_accountRange.
func (a *API) accountRange(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 6, 6)
	id, start, limit := args.Block(0), parameter.Decode(&args, 1, parseStart), parameter.Decode(&args, 2, parsePlain)
	noCode, noStorage, _ := args.Bool(3), args.Bool(4), args.Bool(5)
	if args.Err != nil {
		return out, args.Err
	}
	view, number, err := a.existing(ctx, id)
	if err != nil {
		return out, err
	}
	header, err := view.Header(ctx, number)
	if err != nil {
		return out, err
	}
	if limit == 0 || limit > maxRangeAccounts {
		limit = maxRangeAccounts
	}
	d := dump{contents: execute.Contents{Storage: !noStorage, Code: !noCode}, room: jsonrpc.RoomFor(ctx, out)}
	d.out = fmt.Appendf(out, `{"root":"%x","accounts":{`, header.Root)
	var next *common.Hash
	err = view.EachAccount(ctx, number, start, d.contents, func(account query.RangedAccount) (bool, error) {
		if d.count == limit {
			next = &account.Hash
			return false, nil
		}
		return true, d.add(ctx, account)
	})
	out = append(d.out, '}')
	if next != nil {
		out = appendHash(append(out, `,"next":`...), *next)
	}
	return append(out, '}'), err
}

// dump is a list of accounts that is being appended.
type dump struct {
	contents execute.Contents
	room     jsonrpc.Room
	out      []byte
	count    uint64
}

func (d *dump) add(ctx context.Context, account query.RangedAccount) error {
	if d.count++; d.count > 1 {
		d.out = append(d.out, ',')
	}
	d.out = fmt.Appendf(d.out, `"pre(%#x)":{"balance":"%s","nonce":%d,"root":"%#x","codeHash":"%#x"`, account.Hash, account.Balance.Dec(), account.Nonce, account.Root, account.CodeHash)
	if codeHash := common.BytesToHash(account.CodeHash); d.contents.Code && codeHash != types.EmptyCodeHash {
		code, err := account.Code(ctx)
		if err != nil {
			return err
		}
		d.out = appendHex(append(d.out, `,"code":`...), code)
	}
	if d.contents.Storage && account.Root != types.EmptyRootHash {
		d.out = append(d.out, `,"storage":{`...)
		first := true
		err := account.EachSlot(ctx, func(slot, value common.Hash) (bool, error) {
			if !first {
				d.out = append(d.out, ',')
			}
			first = false
			d.out = fmt.Appendf(d.out, `"%#x":"%x"`, slot, common.TrimLeftZeroes(value[:]))
			return true, d.room.Check(len(d.out))
		})
		if err != nil {
			return err
		}
		d.out = append(d.out, '}')
	}
	d.out = append(appendHash(append(d.out, `,"key":`...), account.Hash), '}')
	return d.room.Check(len(d.out))
}

// modifiedByNumber answers debug_getModifiedAccountsByNumber.
func (a *API) modifiedByNumber(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	start := chain.BlockID{Number: parameter.Decode(&args, 0, parsePlain)}
	var end *chain.BlockID
	if args.Given(1) {
		end = &chain.BlockID{Number: parameter.Decode(&args, 1, parsePlain)}
	}
	return a.modified(ctx, &args, start, end, out)
}

// modifiedByHash answers debug_getModifiedAccountsByHash.
func (a *API) modifiedByHash(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	start := args.BlockHash(0)
	var end *chain.BlockID
	if args.Given(1) {
		id := args.BlockHash(1)
		end = &id
	}
	return a.modified(ctx, &args, start, end, out)
}

// modified lists the accounts that changed between two blocks, or in the first if there
// is no second. Errors are worded as in geth.
func (a *API) modified(ctx context.Context, args *parameter.Arguments, start chain.BlockID, end *chain.BlockID, out []byte) ([]byte, error) {
	if args.Err != nil {
		return out, args.Err
	}
	view, from, err := a.at(ctx, start)
	if unknown(err) {
		return out, unknownEnd("start", start, "%x")
	}
	if pruned := (*archive.Pruned)(nil); errors.As(err, &pruned) && end != nil {
		// The start is on the chain, so an end that is not comes first.
		if _, _, err := a.at(ctx, *end); unknown(err) {
			return out, unknownEnd("end", *end, "%d")
		}
	}
	if err != nil {
		return out, err
	}
	to := from
	switch {
	case end == nil && from == 0:
		return out, &trace.Error{Err: errors.New("block 0 has no parent")}
	case end == nil:
		from--
	case end.Hash == nil && end.Number <= from:
		return out, errNotBefore(from, end.Number) // even if that block is older than the stored ones
	default:
		other := view
		if other, to, err = view.Resolve(ctx, *end); unknown(err) || err == nil && other != view && to > from {
			return out, unknownEnd("end", *end, "%d")
		}
		if err != nil {
			return out, err
		}
	}
	switch {
	case from >= to:
		return out, errNotBefore(from, to)
	case to-from > maxModifiedBlocks:
		return out, errTooManyBlocks(to - from)
	}
	modified, err := view.Modified(ctx, from, to)
	if err != nil {
		return out, err
	}
	if modified == nil {
		return appendNull(out), nil
	}
	room := jsonrpc.RoomFor(ctx, out)
	return room.AppendArray(out, len(modified), func(out []byte, i int) ([]byte, error) { return appendHex(out, modified[i][:]), nil })
}

// unknownEnd is geth's error for an end of a range that is not on the chain.
func unknownEnd(which string, id chain.BlockID, verb string) error {
	if id.Hash != nil {
		return &trace.Error{Err: fmt.Errorf("%s block %x not found", which, *id.Hash)}
	}
	return &trace.Error{Err: fmt.Errorf("%s block "+verb+" not found", which, id.Number)}
}

func errNotBefore(from, to uint64) error {
	return &trace.Error{Err: fmt.Errorf("start block height (%d) must be less than end block height (%d)", from, to)}
}

func errTooManyBlocks(count uint64) error {
	return jsonrpc.Errorf(jsonrpc.CodeClientLimit, "too many blocks: %d > %d", count, maxModifiedBlocks)
}
