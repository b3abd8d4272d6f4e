package api_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// A call that reads a filter is about the contracts that the filter was made for, which
// a key may have been restricted from since; to others than its caller it is none.
func TestContractsOfFilters(t *testing.T) {
	first, second := common.Address{19: 0xaa}, common.Address{19: 0xbb}
	l := serveLive(t, ingest.DefaultDepths(), api.Config{})
	methods := methodsOf(api.New(l.chain, api.Config{}))
	as := func(caller string) context.Context {
		return context.WithValue(t.Context(), jsonrpc.CallerKey{}, caller)
	}
	install := func(method, params string) (id string) {
		t.Helper()
		out, err := methods.Find(method).Handler(as("me"), []byte(params), nil)
		if err != nil || json.Unmarshal(out, &id) != nil {
			t.Fatalf("%s %s: %v %s", method, params, err, out)
		}
		return id
	}
	of := install("eth_newFilter", `[{"address":["`+first.Hex()+`","`+second.Hex()+`"]}]`)
	all, blocks := install("eth_newFilter", `[{}]`), install("eth_newBlockFilter", `[]`)
	for _, c := range []struct {
		name, caller, id string
		about            []common.Address
		restricted       bool
	}{
		{"of two contracts", "me", of, []common.Address{first, second}, true},
		{"of all contracts", "me", all, nil, true},
		{"of blocks", "me", blocks, nil, false},
		{"another's", "you", of, nil, false},
		{"none", "me", "0x1", nil, false},
	} {
		for _, method := range []string{"eth_getFilterLogs", "eth_getFilterChanges"} {
			about, restricted, err := concernOf(as(c.caller), methods, method, `["`+c.id+`"]`)
			if err != nil || restricted != c.restricted || !slices.Equal(about, c.about) {
				t.Errorf("%s, %s: %v %t %v, expected %v %t", method, c.name, about, restricted, err, c.about, c.restricted)
			}
		}
	}
	if about, restricted, err := concernOf(as("me"), methods, "eth_getBalance", `["`+first.Hex()+`"]`); err != nil || !restricted || !slices.Equal(about, []common.Address{first}) {
		t.Errorf("what is no filter: %v %t %v", about, restricted, err)
	}
}
