package parameter

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"ashlar/chain"
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
	address := func(a *Arguments) { a.Address(0) }
	hash := func(a *Arguments) { a.Hash(0) }
	quantity := func(a *Arguments) { a.Uint64(0) }
	bytes := func(a *Arguments) { a.Bytes(0) }
	boolean := func(a *Arguments) { a.Bool(0) }
	key := func(a *Arguments) {
		if _, malformed := a.StorageKey(0); a.Err == nil {
			a.Err = malformed
		}
	}
	block := func(a *Arguments) { a.Block(0) }
	number := func(a *Arguments) { a.BlockNumber(0) }
	for _, c := range []struct {
		name, params string
		decode       func(*Arguments)
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
		{"storage key that is a number", `[5]`, key, "invalid argument 0: non-string value, want a hex string"},
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
			args := Read([]byte(c.params), 2, 1)
			c.decode(&args)
			var got string
			if args.Err != nil {
				got = args.Err.Error()
				var e *jsonrpc.Error
				if !errors.As(args.Err, &e) || e.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("code of %#v, want %d", args.Err, jsonrpc.CodeInvalidParams)
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
	for params, want := range map[string]chain.BlockID{
		``:                   {Tag: chain.Latest},
		`[]`:                 {Tag: chain.Latest},
		`[null]`:             {Tag: chain.Latest},
		`["latest"]`:         {Tag: chain.Latest},
		`["earliest"]`:       {Tag: chain.Earliest},
		`["pending"]`:        {Tag: chain.Pending},
		`["safe"]`:           {Tag: chain.Safe},
		`["finalized"]`:      {Tag: chain.Finalized},
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
		`[{"blockNumber":"safe","more":[1]}]`:                                              {Tag: chain.Safe},
	} {
		args := Read([]byte(params), 1, 0)
		got := args.Block(0)
		if args.Err != nil {
			t.Errorf("%s: %v", params, args.Err)
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
		wide, err := ParseUint256(jsonrpc.AppendString(nil, text))
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
		args := Read([]byte("["+text+"]"), 1, 1)
		Decode(&args, 0, ParseBlockNumber)
		var failure *jsonrpc.Error
		if !errors.As(args.Err, &failure) {
			t.Errorf("%s: error %v", text, args.Err)
			continue
		}
		if data, _ := failure.Data.(string); strings.Contains(data, "safe or finalized") != explained {
			t.Errorf("%s: data %q", text, data)
		}
	}
}

// TestLogFilter lists which logs a filter selects.
func TestLogFilter(t *testing.T) {
	address, topic := common.HexToAddress("7dcd17433742f4c0ca53122ab541d0ba67fc27df"), common.HexToHash("a38f2a6f7d276298d8e7a9bfa28625e4dc8948021f5a7369d0a04571879e98d2")
	latest := chain.BlockID{Tag: chain.Latest}
	for object, want := range map[string]LogFilter{
		`{}`: {From: latest, To: latest},
		`{"fromBlock":null,"toBlock":null,"blockHash":null,"address":null,"topics":null}`: {From: latest, To: latest},
		`{"fromBlock":"0x10","toBlock":"safe","more":1}`:                                  {From: chain.BlockID{Number: 16}, To: chain.BlockID{Tag: chain.Safe}},
		`{"blockHash":` + someHash + `}`:                                                  {From: latest, To: latest, Hash: &topic},
		`{"address":` + someAddress + `}`:                                                 {From: latest, To: latest, Addresses: []common.Address{address}},
		`{"address":[` + someAddress + `,` + someAddress + `]}`:                           {From: latest, To: latest, Addresses: []common.Address{address, address}},
		`{"topics":[]}`: {From: latest, To: latest},
		`{"topics":[null,` + someHash + `,[` + someHash + `,` + someHash + `],[` + someHash + `,null,5]]}`: {
			From: latest, To: latest, Topics: [][]common.Hash{nil, {topic}, {topic, topic}, nil},
		},
	} {
		got, err := ParseLogFilter([]byte(object))
		if err != nil {
			t.Errorf("%s: %v", object, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", object, got, want)
		}
	}
}

// TestLogFilterErrors lists why a filter is invalid. Of several errors the one about blocks
// wins, then the one about addresses.
func TestLogFilterErrors(t *testing.T) {
	for object, want := range map[string]string{
		`5`:                 "non-object value, want a filter object",
		`{"fromBlock":"1"}`: "hex string without 0x prefix",
		`{"fromBlock":"0x1","blockHash":` + someHash + `}`:                         errFilterBoth.Error(),
		`{"topics":5,"address":5,"fromBlock":5}`:                                   "non-string value, want a hex string",
		`{"topics":5,"address":5,"toBlock":"latest","blockHash":` + someHash + `}`: errFilterBoth.Error(),
		`{"topics":5,"address":5}`:                                                 "invalid addresses in query",
		`{"address":"0x12"}`:                                                       "invalid address: hex string has length 2, want 40 for common.Address",
		`{"address":[` + someAddress + `,5]}`:                                      "non-string address at index 1",
		`{"address":[` + someAddress + `,"0xz"]}`:                                  "invalid address at index 1: hex string of odd length",
		`{"topics":5}`:                          "invalid topic(s)",
		`{"topics":[5]}`:                        "invalid topic(s)",
		`{"topics":[[[]]]}`:                     "invalid topic(s)",
		`{"topics":["0x12"]}`:                   "hex string has length 2, want 64 for common.Hash",
		`{"topics":[null,null,null,null,null]}`: "exceed max topics",
	} {
		if _, err := ParseLogFilter([]byte(object)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", object, err, want)
		}
	}
}

// TestLogFilterSize counts addresses and topics together.
func TestLogFilterSize(t *testing.T) {
	f := LogFilter{Addresses: make([]common.Address, 3000), Topics: [][]common.Hash{nil, make([]common.Hash, 1500), make([]common.Hash, 500)}}
	if err := f.CheckSize(); err != nil {
		t.Error(err)
	}
	f.Topics[2] = append(f.Topics[2], common.Hash{})
	const want = "too many addresses and topics: the query filters by 5001, and the current limit is 5000"
	if err := f.CheckSize(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestShortHash: digits that are left out are zeros before the others.
func TestShortHash(t *testing.T) {
	for text, want := range map[string]common.Hash{
		"0x0": {}, "0x00f": {31: 15}, "0Xabc": {30: 10, 31: 0xbc}, strings.Trim(someHash, `"`): common.HexToHash(strings.Trim(someHash, `"`)),
	} {
		if got, err := ParseShortHash([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %x, %v, want %x", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "empty hex string", "1": "hex string without 0x prefix", "0x": `hex string "0x"`, "0xg": "invalid hex string",
		"0x0" + strings.Trim(someHash, `"`)[2:]: "hex string has 65 digits, want at most 64",
	} {
		if _, err := ParseShortHash([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
