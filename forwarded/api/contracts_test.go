package api

import (
	"slices"
	"strings"
	"testing"

	"ashlar/forwarded/query"

	"github.com/ethereum/go-ethereum/common"
)

// The addresses of two contracts in params.
const contractA, contractB = `"0x00000000000000000000000000000000000000aa"`, `"0x00000000000000000000000000000000000000bb"`

// Keys that are restricted to contracts reach these alone.
func TestContracts(t *testing.T) {
	api := New(nil, Config{Allowed: []string{"trace_call"}})
	methods, err := api.Methods()
	if err != nil {
		t.Fatal(err)
	}
	installed := func(f *polledFilter) string {
		id, err := api.publisher.polled.Add("", f, 1)
		if err != nil {
			t.Fatal(err)
		}
		return `["` + id + `"]`
	}
	a, b := common.HexToAddress("0xaa"), common.HexToAddress("0xbb")
	to := func(members, more string) string {
		return `[{"from":` + contractB + `,"to":` + contractA + members + `}` + more + `]`
	}
	for _, c := range []struct {
		method, params string
		about          []common.Address
		refused        string
	}{
		{"eth_getBalance", `[` + contractA + `,"latest"]`, []common.Address{a}, ""},
		{"eth_getCode", `[` + contractB + `]`, []common.Address{b}, ""},
		{"eth_getTransactionCount", `[` + contractB + `]`, []common.Address{b}, ""},
		{"eth_getStorageAt", `[` + contractB + `,"0x0"]`, []common.Address{b}, ""},
		{"eth_getProof", `[` + contractB + `,[]]`, []common.Address{b}, ""},
		{"eth_getLogs", `[{"address":[` + contractA + `,` + contractB + `]}]`, []common.Address{a, b}, ""},
		{"eth_newFilter", `[{"address":` + contractA + `}]`, []common.Address{a}, ""},
		{"eth_newFilter", `[{}]`, nil, ""},
		{"eth_getFilterChanges", installed(&polledFilter{watched: &watchedLogs{Filter: query.Filter{Addresses: []common.Address{b}}}}), []common.Address{b}, ""},
		{"eth_getFilterLogs", installed(&polledFilter{watched: &watchedLogs{Filter: query.Filter{Addresses: []common.Address{a}}}}), []common.Address{a}, ""},
		{"eth_getFilterChanges", installed(&polledFilter{watched: new(watchedLogs)}), nil, ""},
		{"eth_subscribe", `["logs",{"address":` + contractA + `}]`, []common.Address{a}, ""},
		{"eth_subscribe", `["logs",{}]`, nil, ""},
		{"eth_subscribe", `["more"]`, nil, `the contracts of "more" subscriptions are unknown`},
		{"eth_simulateV1", `[{"blockStateCalls":[]}]`, nil, ""},
		{"trace_call", to("", ""), nil, ""},

		{"eth_call", to("", ""), []common.Address{a}, ""},
		{"eth_call", to(`,"authorizationList":[]`, `,"latest",null,{"number":"0x1"}`), []common.Address{a}, ""},
		{"eth_call", `[{"data":"0x"}]`, nil, ""},
		{"eth_call", `[{"to":null}]`, nil, ""},
		{"eth_call", `[{"\u0074o":` + contractA + `}]`, []common.Address{a}, ""},
		{"eth_call", to(`,"authorizationList":[{}]`, ""), nil, "expected no overrides, and no authorizationList"},
		{"eth_call", to("", `,"latest",{`+contractA+`:{"balance":"0x1"}}`), nil, "expected no overrides, and no authorizationList"},
		{"eth_call", `[{"to":"0x12"}]`, nil, "hex string has length 2"},
		// Nodes differ in how they read these.
		{"eth_call", `[{"to":` + contractB + `,"TO":` + contractA + `}]`, nil, `expected "to" once, in this spelling`},
		{"eth_call", `[{"To":` + contractA + `}]`, nil, `expected "to" once, in this spelling`},
		{"eth_call", `[{"to":` + contractB + `,"to":` + contractA + `}]`, nil, `expected "to" once, in this spelling`},
		{"eth_call", to(`,"authorizationList":[{}],"authorizationlist":[]`, ""), nil, `expected "authorizationList" once, in this spelling`},
	} {
		names := []string{c.method}
		if c.method == "eth_call" {
			names = append(names, "eth_estimateGas", "eth_createAccessList")
		}
		for _, name := range names {
			concern, err := methods.Find(name).Concerns(t.Context(), []byte(c.params))
			var about []common.Address
			for _, contract := range concern.Contracts() {
				about = append(about, common.BytesToAddress([]byte(contract)))
			}
			switch {
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%s %s: %v %v, expected %q", name, c.params, about, err, c.refused)
			case c.refused == "" && (err != nil || concern.IsNone() || !slices.Equal(about, c.about)):
				t.Errorf("%s %s: %v %v, expected %v", name, c.params, about, err, c.about)
			}
		}
	}
}
