package api

import (
	"errors"
	"strings"
	"testing"

	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

const (
	someAddress = `"0x7dcd17433742f4c0ca53122ab541d0ba67fc27df"`
	someHash    = `"0xa38f2a6f7d276298d8e7a9bfa28625e4dc8948021f5a7369d0a04571879e98d2"`
)

// TestArguments lists what clients may send and what they read when they may not.
func TestArguments(t *testing.T) {
	address := func(a *arguments) { a.address(0) }
	hash := func(a *arguments) { a.hash(0) }
	quantity := func(a *arguments) { a.uint64(0) }
	bytes := func(a *arguments) { a.bytes(0) }
	boolean := func(a *arguments) { a.bool(0) }
	key := func(a *arguments) { a.storageKey(0) }
	block := func(a *arguments) { a.block(0) }
	number := func(a *arguments) { a.blockNumber(0) }
	for _, c := range []struct {
		name, params string
		decode       func(*arguments)
		want         string // the error; none when empty
	}{
		{"address", `[` + someAddress + `]`, address, ""},
		{"address in capitals", `["0X7DCD17433742F4C0CA53122AB541D0BA67FC27DF"]`, address, ""},
		{"address too short", `["0x7dcd17433742f4c0ca53122ab541d0ba67fc27"]`, address, "invalid argument 0: hex string has length 38, want 40 for common.Address"},
		{"address of odd length", `["0x7dc"]`, address, "invalid argument 0: hex string of odd length"},
		{"address without prefix", `["7dcd17433742f4c0ca53122ab541d0ba67fc27df"]`, address, "invalid argument 0: hex string without 0x prefix"},
		{"address with a letter too far", `["0x7dcd17433742f4c0ca53122ab541d0ba67fc27dg"]`, address, "invalid argument 0: invalid hex string"},
		{"address that is a number", `[5]`, address, "invalid argument 0: non-string value, want a hex string"},
		{"address that is empty", `[""]`, address, "invalid argument 0: empty hex string"},
		{"no address", `[]`, address, "missing value for required argument 0"},
		{"null for an address", `[null]`, address, "missing value for required argument 0"},
		{"one too many", `[` + someAddress + `,1,2]`, address, "too many arguments, want at most 2"},
		{"no array", `{"address":1}`, address, "non-array args"},

		{"hash", `[` + someHash + `]`, hash, ""},
		{"hash too long", `["0xa38f2a6f7d276298d8e7a9bfa28625e4dc8948021f5a7369d0a04571879e98d200"]`, hash, "invalid argument 0: hex string has length 66, want 64 for common.Hash"},

		{"quantity", `["0xfF"]`, quantity, ""},
		{"quantity of no digits", `["0x"]`, quantity, `invalid argument 0: hex string "0x"`},
		{"quantity with zeros before it", `["0x01"]`, quantity, "invalid argument 0: hex number with leading zero digits"},
		{"greatest quantity", `["0xffffffffffffffff"]`, quantity, ""},
		{"quantity too great", `["0x10000000000000000"]`, quantity, "invalid argument 0: hex number > 64 bits"},
		{"quantity with a sign", `["0x-1"]`, quantity, "invalid argument 0: invalid hex string"},

		{"bytes", `["0x00ff"]`, bytes, ""},
		{"no bytes", `["0x"]`, bytes, ""},
		{"the empty string for no bytes", `[""]`, bytes, ""},
		{"half a byte", `["0x0"]`, bytes, "invalid argument 0: hex string of odd length"},

		{"boolean", `[true]`, boolean, ""},
		{"boolean in quotes", `["true"]`, boolean, "invalid argument 0: non-boolean value, want true or false"},

		{"storage key", `["0x0"]`, key, ""},
		{"storage key without prefix", `["1f"]`, key, ""},
		{"storage key that is empty", `[""]`, key, ""},
		{"storage key of no hex", `["0xasdf"]`, key, `invalid hex in storage key: "0xasdf"`},
		{"storage key of 33 bytes", `["0x00000000000000000000000000000000000000000000000000000000000000000"]`, key,
			`storage key too long (want at most 32 bytes): "0x00000000000000000000000000000000000000000000000000000000000000000"`},

		{"block object", `[{"blockHash":` + someHash + `,"requireCanonical":true}]`, block, ""},
		{"block object with null", `[{"blockHash":null,"blockNumber":"latest"}]`, block, ""},
		{"block object with both", `[{"blockHash":` + someHash + `,"blockNumber":"0x1"}]`, block, "invalid argument 0: cannot specify both BlockHash and BlockNumber, choose one or the other"},
		{"block object with neither", `[{}]`, block, "invalid argument 0: must specify either BlockHash or BlockNumber"},
		{"block object with a short hash", `[{"blockHash":"0x01"}]`, block, "invalid argument 0: hex string has length 2, want 64 for common.Hash"},
		{"block tag misspelt", `["newest"]`, block, "invalid argument 0: hex string without 0x prefix"},
		{"block number too great", `["0x8000000000000000"]`, block, "invalid argument 0: block number larger than int64"},
		{"hash where a number is wanted", `[` + someHash + `]`, number, "invalid argument 0: hex number > 64 bits"},
		{"object where a number is wanted", `[{"blockNumber":"0x1"}]`, number, "invalid argument 0: non-string value, want a hex string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := readArguments([]byte(c.params), 2, 1)
			c.decode(&args)
			var got string
			if args.err != nil {
				got = args.err.Error()
				var e *jsonrpc.Error
				if !errors.As(args.err, &e) || e.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("code of %#v, want %d", args.err, jsonrpc.CodeInvalidParams)
				}
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.params, got, c.want)
			}
		})
	}
}

// TestBlockArgument lists which block a parameter names.
func TestBlockArgument(t *testing.T) {
	hash := common.HexToHash("a38f2a6f7d276298d8e7a9bfa28625e4dc8948021f5a7369d0a04571879e98d2")
	for params, want := range map[string]query.BlockID{
		``:                   {Tag: query.Latest},
		`[]`:                 {Tag: query.Latest},
		`[null]`:             {Tag: query.Latest},
		`["latest"]`:         {Tag: query.Latest},
		`["earliest"]`:       {Tag: query.Earliest},
		`["pending"]`:        {Tag: query.Pending},
		`["safe"]`:           {Tag: query.Safe},
		`["finalized"]`:      {Tag: query.Finalized},
		`["0x0"]`:            {},
		`["0xABCDEF"]`:       {Number: 0xabcdef},
		`["0xabcdef"]`:       {Number: 0xabcdef},
		`["\u0030x1"]`:       {Number: 1},
		`[` + someHash + `]`: {Hash: &hash},
		`[{"requireCanonical":true,"blockHash":` + someHash + `}]`:                         {Hash: &hash, RequireCanonical: true},
		`[{"blockNumber":"0x10"}]`:                                                         {Number: 16},
		`[{"blockHash":` + someHash + `,"blockHash":null,"blockNumber":"0x10"}]`:           {Number: 16},
		`[{"blockNumber":"0x10","blockNumber":null,"blockHash":` + someHash + `}]`:         {Hash: &hash},
		`[{"blockHash":` + someHash + `,"requireCanonical":true,"requireCanonical":null}]`: {Hash: &hash},
		`[{"blockNumber":"safe","more":[1]}]`:                                              {Tag: query.Safe},
	} {
		args := readArguments([]byte(params), 1, 0)
		got := args.block(0)
		if args.err != nil {
			t.Errorf("%s: %v", params, args.err)
		}
		if got.Tag != want.Tag || got.Number != want.Number || got.RequireCanonical != want.RequireCanonical ||
			(got.Hash == nil) != (want.Hash == nil) || got.Hash != nil && *got.Hash != *want.Hash {
			t.Errorf("%s: %+v, want %+v", params, got, want)
		}
	}
}

// FuzzQuantity holds that a quantity is accepted exactly where go-ethereum's own
// decoder accepts it, and has the same value.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"0x0", "0x01", "0xfF", "0x", "", "1", "0xffffffffffffffff", "0x10000000000000000", "0xg", "0X1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseUint64Text([]byte(text))
		want, wantErr := hexutil.DecodeUint64(text)
		if (err == nil) != (wantErr == nil) || got != want && err == nil {
			t.Errorf("%q: %d, %v; go-ethereum: %d, %v", text, got, err, want, wantErr)
		}
		wide, err := parseUint256(jsonrpc.AppendString(nil, text))
		big, wantErr := hexutil.DecodeBig(text)
		if (err == nil) != (wantErr == nil) || err == nil && wide.ToBig().Cmp(big) != 0 {
			t.Errorf("%q: %v, %v; go-ethereum: %v, %v", text, wide, err, big, wantErr)
		}
	})
}

// A word in place of a block is answered with the tags there are; digits without 0x are
// answered as geth does.
func TestMisspeltTag(t *testing.T) {
	for text, explained := range map[string]bool{`"newest"`: true, `"Latest"`: true, `"2"`: false, `""`: false, `"0x"`: false} {
		args := readArguments([]byte("["+text+"]"), 1, 1)
		argument(&args, 0, parseBlockNumber)
		var failure *jsonrpc.Error
		if !errors.As(args.err, &failure) {
			t.Errorf("%s: error %v", text, args.err)
			continue
		}
		if data, _ := failure.Data.(string); strings.Contains(data, "safe or finalized") != explained {
			t.Errorf("%s: data %q", text, data)
		}
	}
}
