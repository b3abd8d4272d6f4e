// Package parameter decodes the parameters of Ethereum's JSON-RPC methods, for all families
// that have these methods: positional arguments, hex values, blocks and log filters.
//
// Errors have geth's wording where it has one, because clients were written against it. When
// several parts of a call are wrong, the error is about the part that geth names.
package parameter

import (
	"errors"

	"ashlar/chain"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// MaxArguments is the maximum number of arguments of any method.
const MaxArguments = 6

// Arguments are the positional arguments of a call. Each is decoded by the method named
// after its type. The first failure is recorded in Err with its position; the decoded
// values must not be used then.
//
//	args := parameter.Read(params, 2, 1)
//	address, id := args.Address(0), args.Block(1)
//	if args.Err != nil {
//		return out, args.Err
//	}
type Arguments struct {
	Err error // an *jsonrpc.Error
	raw [MaxArguments][]byte
}

// Read splits params into at most `most` arguments, of which the first `required` must be
// present.
func Read(params []byte, most, required int) (a Arguments) {
	a.Err = jsonrpc.Arguments(params, a.raw[:most], required)
	return a
}

// Raw returns argument n as the client sent it, or nil if it is missing or null.
func (a *Arguments) Raw(n int) []byte { return a.raw[n] }

// Given reports whether the optional argument n is present and not null.
func (a *Arguments) Given(n int) bool { return a.raw[n] != nil }

// Fail records why argument n is invalid, unless an earlier one is. An [*jsonrpc.Error] is
// used unchanged.
func (a *Arguments) Fail(n int, err error) {
	if a.Err != nil || err == nil {
		return
	}
	var whole *jsonrpc.Error
	if errors.As(err, &whole) {
		a.Err = whole
		return
	}
	invalid := jsonrpc.InvalidArgument(n, err.Error())
	if errors.Is(err, errBlockTag) {
		invalid.Data = `expected a block number such as "0x1b4", or latest, earliest, pending, safe or finalized`
	}
	a.Err = invalid
}

// Decode decodes argument n with parse, unless an earlier one failed.
func Decode[T any](a *Arguments, n int, parse func([]byte) (T, error)) (value T) {
	if a.Err != nil {
		return value
	}
	value, err := parse(a.raw[n])
	a.Fail(n, err)
	return value
}

// The methods below decode an argument with the function of their name. They are not inlined:
// in the caller's package the compiler would assume that Decode keeps its arguments, and move
// them to the heap.

//go:noinline
func (a *Arguments) Address(n int) common.Address { return Decode(a, n, ParseAddress) }

//go:noinline
func (a *Arguments) Hash(n int) common.Hash { return Decode(a, n, ParseHash) }

//go:noinline
func (a *Arguments) Uint64(n int) uint64 { return Decode(a, n, ParseUint64) }

//go:noinline
func (a *Arguments) Bytes(n int) []byte { return Decode(a, n, ParseBytes) }

//go:noinline
func (a *Arguments) Bool(n int) bool { return Decode(a, n, ParseBool) }

//go:noinline
func (a *Arguments) Text(n int) string { return Decode(a, n, ParseText) }

// StorageKey decodes the key of a slot, and has the errors of [Arguments.ParseKey].
//
//go:noinline
func (a *Arguments) StorageKey(n int) (key common.Hash, malformed error) {
	return a.ParseKey(n, a.raw[n])
}

// ParseKey decodes the key of a slot that is argument n or a part of it. Only another type than a string is
// recorded in Err. A string that is not a key is the error malformed: like geth, callers return it
// after those of the types of all arguments.
//
//go:noinline
func (a *Arguments) ParseKey(n int, raw []byte) (key common.Hash, malformed error) {
	if a.Err != nil {
		return key, nil
	}
	key, err := ParseStorageKey(raw)
	if errors.Is(err, errNonString) {
		a.Fail(n, err)
		return key, nil
	}
	return key, err
}

// Block decodes a block parameter: number, tag, hash or an EIP-1898 object. If it is
// optional and missing, it is the latest block.
func (a *Arguments) Block(n int) chain.BlockID {
	if !a.Given(n) {
		return chain.BlockID{Tag: chain.Latest}
	}
	return Decode(a, n, ParseBlock)
}

// BlockNumber decodes a block parameter that must be a number or a tag.
func (a *Arguments) BlockNumber(n int) chain.BlockID {
	if !a.Given(n) {
		return chain.BlockID{Tag: chain.Latest}
	}
	return Decode(a, n, ParseBlockNumber)
}

// BlockHash decodes a block parameter that must be a hash.
func (a *Arguments) BlockHash(n int) chain.BlockID {
	hash := a.Hash(n)
	return chain.BlockID{Hash: &hash}
}

// ParseBool decodes true or false.
func ParseBool(raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errNonBool
}

// ParseText decodes any string, such as the ID of a subscription or a filter.
func ParseText(raw []byte) (string, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return "", errNonString
	}
	return string(text), nil
}
