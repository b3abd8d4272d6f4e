package api

import (
	"errors"
	"fmt"
	"math"

	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// maxArguments is the maximum number of arguments of any method.
const maxArguments = 6

// arguments are the positional arguments of a call. Each is decoded by the method named
// after its type. The first failure is recorded in err with its position; the decoded
// values must not be used then.
//
//	args := readArguments(params, 2, 1)
//	address, id := args.address(0), args.block(1)
//	if args.err != nil {
//		return out, args.err
//	}
type arguments struct {
	raw [maxArguments][]byte
	err error // an *jsonrpc.Error
}

// readArguments splits params into at most `most` arguments, of which the first `required`
// must be present.
func readArguments(params []byte, most, required int) (a arguments) {
	a.err = jsonrpc.Arguments(params, a.raw[:most], required)
	return a
}

// given reports whether the optional argument n is present and not null.
func (a *arguments) given(n int) bool { return a.raw[n] != nil }

// fail records why argument n is invalid. An [*jsonrpc.Error] is used unchanged.
func (a *arguments) fail(n int, err error) {
	if a.err != nil || err == nil {
		return
	}
	var whole *jsonrpc.Error
	if errors.As(err, &whole) {
		a.err = whole
		return
	}
	invalid := jsonrpc.InvalidArgument(n, err.Error())
	if errors.Is(err, errBlockTag) {
		invalid.Data = `expected a block number such as "0x1b4", or latest, earliest, pending, safe or finalized`
	}
	a.err = invalid
}

// argument decodes argument n, unless an earlier one failed.
func argument[T any](a *arguments, n int, parse func([]byte) (T, error)) (value T) {
	if a.err != nil {
		return value
	}
	value, err := parse(a.raw[n])
	a.fail(n, err)
	return value
}

func (a *arguments) address(n int) common.Address { return argument(a, n, parseAddress) }
func (a *arguments) hash(n int) common.Hash       { return argument(a, n, parseHash) }
func (a *arguments) uint64(n int) uint64          { return argument(a, n, parseUint64) }
func (a *arguments) bytes(n int) []byte           { return argument(a, n, parseBytes) }
func (a *arguments) bool(n int) bool              { return argument(a, n, parseBool) }
func (a *arguments) storageKey(n int) common.Hash { return argument(a, n, parseStorageKey) }

// block decodes a block parameter: number, tag, hash or an EIP-1898 object. If it is
// optional and missing, it is the latest block.
func (a *arguments) block(n int) query.BlockID {
	if !a.given(n) {
		return query.BlockID{Tag: query.Latest}
	}
	return argument(a, n, parseBlock)
}

// blockNumber decodes a block parameter that must be a number or a tag.
func (a *arguments) blockNumber(n int) query.BlockID {
	if !a.given(n) {
		return query.BlockID{Tag: query.Latest}
	}
	return argument(a, n, parseBlockNumber)
}

// Why a value is invalid; geth's wording if it has one.
var (
	errNonString    = errors.New("non-string value, want a hex string")
	errNonBool      = errors.New("non-boolean value, want true or false")
	errEmpty        = errors.New("empty hex string")
	errPrefix       = errors.New("hex string without 0x prefix")
	errSyntax       = errors.New("invalid hex string")
	errOdd          = errors.New("hex string of odd length")
	errNoDigits     = errors.New(`hex string "0x"`)
	errLeadingZero  = errors.New("hex number with leading zero digits")
	errOver64       = errors.New("hex number > 64 bits")
	errOver256      = errors.New("hex number > 256 bits")
	errBlockTag     = fmt.Errorf("%w", errPrefix) // a word in place of a block
	errBlockNumber  = errors.New("block number larger than int64")
	errBlockBoth    = errors.New("cannot specify both BlockHash and BlockNumber, choose one or the other")
	errBlockNeither = errors.New("must specify either BlockHash or BlockNumber")
)

// parseBool decodes true or false.
func parseBool(raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errNonBool
}

// parseBlockNumber decodes a block number, with digits in either case, or a tag.
func parseBlockNumber(raw []byte) (query.BlockID, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return query.BlockID{}, errNonString
	}
	if tag := blockTag(text); tag != query.NoTag {
		return query.BlockID{Tag: tag}, nil
	}
	number, err := parseUint64Text(text)
	if errors.Is(err, errPrefix) && len(text) > 0 && !isDigit(text[0]) {
		err = errBlockTag
	}
	if err == nil && number > math.MaxInt64 {
		err = errBlockNumber
	}
	return query.BlockID{Number: number}, err
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func blockTag(text []byte) query.Tag {
	switch string(text) {
	case "latest":
		return query.Latest
	case "earliest":
		return query.Earliest
	case "pending":
		return query.Pending
	case "safe":
		return query.Safe
	case "finalized":
		return query.Finalized
	}
	return query.NoTag
}

// parseBlock decodes a block number, a tag, a block hash or an EIP-1898 object.
func parseBlock(raw []byte) (query.BlockID, error) {
	if members, ok := jsonrpc.Object(raw); ok {
		return parseBlockObject(members)
	}
	const hashText = len(`"0x"`) + 2*common.HashLength
	if len(raw) == hashText {
		hash, err := parseHash(raw)
		return query.BlockID{Hash: &hash}, err
	}
	return parseBlockNumber(raw)
}

func parseBlockObject(members jsonrpc.Cursor) (id query.BlockID, err error) {
	var number *query.BlockID
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			err = jsonrpc.SetOptional(&number, value, parseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&id.Hash, value, parseHash)
		case name.Is("requireCanonical"):
			err = jsonrpc.Set(&id.RequireCanonical, value, parseBool)
		}
	}
	switch {
	case err != nil:
		return id, err
	case number != nil && id.Hash != nil:
		return id, errBlockBoth
	case number != nil:
		id.Tag, id.Number = number.Tag, number.Number
	case id.Hash == nil:
		return id, errBlockNeither
	}
	return id, nil
}

// parseUint256 decodes a quantity of at most 256 bits.
func parseUint256(raw []byte) (*uint256.Int, error) {
	digits, err := quantityDigits(raw)
	if err != nil {
		return nil, err
	}
	if len(digits) > 64 {
		return nil, errOver256
	}
	value := new(uint256.Int)
	for _, c := range digits {
		d := digitValue(c)
		if d < 0 {
			return nil, errSyntax
		}
		value.Lsh(value, 4)
		value[0] |= uint64(d)
	}
	return value, nil
}
