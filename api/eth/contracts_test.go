package eth

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

func TestContracts(t *testing.T) {
	const a, b = `"0x00000000000000000000000000000000000000AA"`, `"0x00000000000000000000000000000000000000bb"`
	first, second := common.HexToAddress("0xaa"), common.HexToAddress("0xbb")
	for _, c := range []struct {
		method, params string
		restricted     bool
		about          []common.Address
	}{
		{"eth_blockNumber", `[]`, false, nil},
		{"eth_getBalance", `[` + a + `,"latest"]`, true, []common.Address{first}},
		{"eth_getProof", `[` + a + `,[],"latest"]`, true, []common.Address{first}},
		{"eth_getBalance", `["0x12","latest"]`, true, nil},
		{"eth_getBalance", ``, true, nil},
		{"eth_call", `[{"from":` + b + `,"to":` + a + `},"latest"]`, true, []common.Address{first}},
		{"eth_call", `[{"to":` + a + `,"to":` + b + `}]`, true, []common.Address{first, second}},
		{"eth_call", `[{"data":"0x"}]`, true, nil},
		{"eth_call", `[{"to":` + a + `,"to":null}]`, true, nil},
		{"eth_call", `[{"\u0074o":` + a + `}]`, true, []common.Address{first}},
		{"eth_getLogs", `[{"address":[` + a + `,` + b + `]}]`, true, []common.Address{first, second}},
		{"eth_getLogs", `[{"address":[]}]`, true, nil},
		{"eth_getLogs", `[{}]`, true, nil},
		{"eth_subscribe", `["newHeads"]`, false, nil},
		{"eth_subscribe", `["logs",{"address":` + a + `}]`, true, []common.Address{first}},
		{"eth_subscribe", `["\u006cogs",{}]`, true, nil},
		{"eth_subscribe", `["logs"]`, true, nil},
		{"eth_newFilter", `[{"address":` + a + `}]`, true, []common.Address{first}},
		{"eth_getStorageValues", `[{` + a + `:["0x0"]},"latest"]`, true, []common.Address{first}},
	} {
		about, restricted := Contracts(c.method, []byte(c.params))
		if restricted != c.restricted || !slices.Equal(about, c.about) {
			t.Errorf("%s %s: %v %t, expected %v %t", c.method, c.params, about, restricted, c.about, c.restricted)
		}
	}
}
