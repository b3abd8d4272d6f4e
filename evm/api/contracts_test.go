package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// described returns the methods of a network that is asked nothing.
func described(t *testing.T) *jsonrpc.Methods {
	t.Helper()
	executor, err := execute.New(params.MainnetChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	return methodsOf(api.New(query.NewChain(nil, nil, executor), api.Config{}))
}

// concernOf judges a call. restricted is false for a call that concerns no contract.
func concernOf(ctx context.Context, methods *jsonrpc.Methods, method, params string) (about []common.Address, restricted bool, err error) {
	concern, err := methods.Find(method).Concerns(ctx, []byte(params))
	for _, contract := range concern.Contracts() {
		about = append(about, common.BytesToAddress([]byte(contract)))
	}
	return about, err != nil || !concern.IsNone(), err
}

// TestAddressesAreJudged: a method that is given an address, a call or a filter must say
// which contracts it concerns.
func TestAddressesAreJudged(t *testing.T) {
	notContracts := []string{"txpool_contentFrom", "ots_getTransactionBySenderAndNonce", "eth_getTransactionBySenderAndNonce"} // the address is a sender
	for method := range described(t).All() {
		for _, p := range method.Params {
			if name := p.Schema.Name; name != "Address" && name != "Call" && !strings.HasSuffix(name, "Filter") || slices.Contains(notContracts, method.Name) {
				continue
			}
			if concern, err := method.Concerns(t.Context(), []byte("[]")); err == nil && concern.IsNone() {
				t.Errorf("%s takes %s and concerns no contract, whatever it is called with", method.Name, p.Schema.Name)
			}
		}
	}
}

func TestContracts(t *testing.T) {
	methods := described(t)
	const a, b = `"0x00000000000000000000000000000000000000AA"`, `"0x00000000000000000000000000000000000000bb"`
	first, second := common.HexToAddress("0xaa"), common.HexToAddress("0xbb")
	const slot = `"0x0000000000000000000000000000000000000000000000000000000000000000"`
	for _, c := range []struct {
		method, params string
		restricted     bool
		about          []common.Address
	}{
		{"eth_blockNumber", `[]`, false, nil},
		{"eth_getBalance", `[` + a + `,"latest"]`, true, []common.Address{first}},
		{"eth_getProof", `[` + a + `,[],"latest"]`, true, []common.Address{first}},
		{"eth_getAccount", `[` + a + `,"latest"]`, true, []common.Address{first}},
		{"eth_getTransactionBySenderAndNonce", `[` + a + `,"0x0"]`, false, nil},
		{"eth_getStorageValues", `[{` + a + `:[` + slot + `]},"latest"]`, true, []common.Address{first}},
		{"eth_getStorageValues", `[{` + a + `:[],` + b + `:[],` + a + `:[]}]`, true, []common.Address{first, second}},

		{"eth_call", `[{"from":` + b + `,"to":` + a + `},"latest"]`, true, []common.Address{first}},
		{"eth_call", `[{"to":` + a + `,"to":` + b + `}]`, true, []common.Address{second}},
		{"eth_call", `[{"to":null,"to":` + a + `}]`, true, []common.Address{first}},
		{"eth_call", `[{"to":` + a + `,"TO":` + b + `}]`, true, []common.Address{second}},
		{"eth_call", `[{"\u0074o":` + a + `}]`, true, []common.Address{first}},
		{"eth_call", `[{"data":"0x"}]`, true, nil},
		{"eth_call", `[{"to":` + a + `,"to":null}]`, true, nil},
		{"eth_call", `[{"to":` + a + `},null,null,{"number":"0x1"}]`, true, []common.Address{first}},
		{"eth_call", `[{"to":` + a + `,"accessList":[{"address":` + b + `,"storageKeys":[]}],"authorizationList":[]}]`, true, []common.Address{first}},
		{"eth_estimateGas", `[{"to":` + a + `},"latest",{` + b + `:{"balance":"0x1"}}]`, true, []common.Address{first, second}},
		{"eth_call", `[{"to":` + a + `},"latest",{` + b + `:null}]`, true, []common.Address{first, second}},
		{"eth_call", `[{"to":` + a + `},"latest",{` + a + `:{"code":"0x60"},` + a + `:{"nonce":"0x1"}}]`, true, []common.Address{first, first}},
		{"eth_call", `[{"to":` + a + `},"latest",{` + a + `:{"code":"0x60","code":null}}]`, true, []common.Address{first, first}},

		{"eth_getLogs", `[{"address":[` + a + `,` + b + `]}]`, true, []common.Address{first, second}},
		{"eth_getLogs", `[{"address":[]}]`, true, nil},
		{"eth_getLogs", `[{"address":` + a + `,"address":null}]`, true, nil},
		{"eth_getLogs", `[{"address":` + a + `,"address":` + b + `}]`, true, []common.Address{second}},
		{"eth_getLogs", `[{}]`, true, nil},
		{"eth_newFilter", `[{"address":` + a + `}]`, true, []common.Address{first}},
		{"debug_getModifiedAccountsByNumber", `[1]`, true, nil},
		{"debug_getModifiedAccountsByHash", `[` + slot + `]`, true, nil},
		{"eth_subscribe", `["newHeads"]`, false, nil},
		{"eth_subscribe", `["logs",{"address":` + a + `}]`, true, []common.Address{first}},
		{"eth_subscribe", `["\u006cogs",{}]`, true, nil},
		{"rollup_getEvents", `{"filter":{"address":` + a + `,"chunk_size":1}}`, true, []common.Address{first}},
		{"rollup_getEvents", `[{"address":` + a + `,"chunk_size":1}]`, true, []common.Address{first}},
		{"rollup_getEvents", `{"filter":{"address":` + b + `,"chunk_size":1},"filter":{"address":` + a + `,"chunk_size":1}}`, true, []common.Address{first}},
		{"rollup_getEvents", `{"filter":{"address":` + a + `,"address":null,"chunk_size":1}}`, true, nil},
	} {
		about, restricted, err := concernOf(t.Context(), methods, c.method, c.params)
		if err != nil || restricted != c.restricted || !slices.Equal(about, c.about) {
			t.Errorf("%s %s: %v %t %v, expected %v %t", c.method, c.params, about, restricted, err, c.about, c.restricted)
		}
	}
}

// TestContractsThatCannotBeTold: calls by which a key that is for one contract could
// read another, and calls that are none.
func TestContractsThatCannotBeTold(t *testing.T) {
	methods := described(t)
	const a, b = `"0x00000000000000000000000000000000000000aa"`, `"0x00000000000000000000000000000000000000bb"`
	const slots = `{"0x0000000000000000000000000000000000000000000000000000000000000000":"0x0000000000000000000000000000000000000000000000000000000000000001"}`
	const authorization = `{"chainId":"0x1","address":` + b + `,"nonce":"0x0","yParity":"0x0","r":"0x1","s":"0x1"}`
	overridden := func(member string) string { return `[{"to":` + a + `},"latest",{` + a + `:{` + member + `}}]` }
	for _, c := range []struct{ name, params, want string }{
		{"code", overridden(`"code":"0x60"`), "this call overrides the code of 0x00000000000000000000000000000000000000aa: expected overrides of balance and nonce alone"},
		{"no code", overridden(`"code":"0x"`), "overrides the code"},
		{"code after null", overridden(`"code":null,"code":"0x60"`), "overrides the code"},
		{"a precompile elsewhere", overridden(`"movePrecompileToAddress":` + b), "overrides the movePrecompileToAddress"},
		{"storage, as where a proxy has the address of its code", overridden(`"stateDiff":` + slots), "overrides the stateDiff"},
		{"all storage", overridden(`"state":` + slots), "overrides the state of"},
		{"code of another", `[{"to":` + a + `},"latest",{` + b + `:{"code":"0x60"}}]`, "overrides the code of 0x00000000000000000000000000000000000000bb"},
		{"an override whose name has an escape", `[{"to":` + a + `},"latest",{` + a + `:{"c\u006fde":"0x60"}}]`, "overrides the code"},
		{"code by authorization", `[{"to":` + a + `,"authorizationList":[` + authorization + `]}]`, "this call lets accounts run other code: expected no authorizationList"},
		{"a short address", `[{"to":"0x12"}]`, "this call cannot be read: invalid argument 0: to: hex string has length 2, want 40 for common.Address"},
		{"no params", ``, "this call cannot be read: missing value for required argument 0"},
		{"params by name", `{"to":` + a + `}`, "this call cannot be read: non-array args"},
	} {
		for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
			if _, restricted, err := concernOf(t.Context(), methods, method, c.params); !restricted || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %t %v, expected %q", c.name, method, restricted, err, c.want)
			}
		}
	}
	for method, params := range map[string]string{
		"eth_getBalance": `[[` + a + `]]`, "eth_getStorageValues": `[{"0x12":[]}]`, "eth_getLogs": `[[]]`, "eth_newFilter": `[{"address":["0x12"]}]`,
		"eth_subscribe": `["logs"]`, "eth_getFilterChanges": `[]`, "rollup_getEvents": `[{"chunk_size":1},{"address":` + a + `,"chunk_size":1}]`,
	} {
		if _, restricted, err := concernOf(t.Context(), methods, method, params); !restricted || err == nil || !strings.Contains(err.Error(), "this call cannot be read: ") {
			t.Errorf("%s %s: %t %v, expected that it cannot be read", method, params, restricted, err)
		}
	}
	for _, kind := range []string{"newState", ""} {
		_, restricted, err := concernOf(t.Context(), methods, "eth_subscribe", `["`+kind+`"]`)
		if invalid := (*jsonrpc.Error)(nil); !restricted || err == nil || errors.As(err, &invalid) {
			t.Errorf("a subscription of the unknown kind %q: %t %v, expected that its contracts are unknown", kind, restricted, err)
		}
	}
}
