package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/evm/api"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	forwardedapi "ashlar/forwarded/api"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/kv/pebble"
	starknetapi "ashlar/starknet/api"
	"ashlar/starknet/archive"
	starknetquery "ashlar/starknet/query"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/params"
)

// methodsOfFamilies describes the methods of each family, without a chain behind them.
func methodsOfFamilies(t *testing.T) []*jsonrpc.Methods {
	t.Helper()
	executor, err := execute.New(params.MainnetChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	stored, err := archive.Create(t.Context(), store, "SN_MAIN")
	if err != nil {
		t.Fatal(err)
	}
	evm, err := api.New(query.NewChain(nil, nil, executor), api.Config{}).Methods()
	if err != nil {
		t.Fatal(err)
	}
	starknet, err := starknetapi.New(starknetquery.NewChain(stored, nil), starknetapi.Usual()).Methods()
	if err != nil {
		t.Fatal(err)
	}
	forwarded, err := forwardedapi.New(nil, forwardedapi.Config{}).Methods()
	if err != nil {
		t.Fatal(err)
	}
	return []*jsonrpc.Methods{evm, starknet, forwarded}
}

// find returns the method with a name, of whichever family.
func find(families []*jsonrpc.Methods, name string) *jsonrpc.Method {
	for _, methods := range families {
		if method := methods.Find(name); method != nil {
			return method
		}
	}
	return nil
}

// Methods that may read many blocks, run code, or return large answers wait in the line of
// heavy calls; what does the same as another method costs the same.
func TestCosts(t *testing.T) {
	families := methodsOfFamilies(t)
	set, others := &config.Config{Credits: map[string]int{"eth_call": 7, "eth_chainId": 0}}, &config.Config{Credits: map[string]int{config.OtherCredits: 30}}
	for method, want := range map[string]struct {
		credits, others int
		weight          jsonrpc.Weight
	}{
		"eth_call": {7, 20, jsonrpc.HeavyWeight}, "eth_feeHistory": {20, 20, jsonrpc.HeavyWeight},
		"eth_getLogs": {50, 50, jsonrpc.HeavyWeight}, "eth_getFilterLogs": {50, 50, jsonrpc.HeavyWeight},
		"eth_getFilterChanges": {20, 20, jsonrpc.HeavyWeight}, "rollup_getEvents": {50, 50, jsonrpc.HeavyWeight},
		"txpool_content": {50, 50, jsonrpc.HeavyWeight}, "txpool_contentFrom": {20, 20, jsonrpc.LightWeight}, "txpool_status": {10, 30, jsonrpc.LightWeight},
		"eth_getBalance": {10, 30, jsonrpc.LightWeight}, "eth_getBlockByNumber": {20, 20, jsonrpc.LightWeight}, "eth_chainId": {0, 1, jsonrpc.LightWeight},
		"starknet_getEvents": {50, 50, jsonrpc.HeavyWeight}, "starknet_chainId": {10, 30, jsonrpc.LightWeight},
	} {
		m := find(families, method)
		if own, of := credits(set, m), credits(others, m); own != want.credits || of != want.others || m.Cost.Weight != want.weight {
			t.Errorf("%s costs %d and, where others cost 30, %d, weight %d; want %+v", method, own, of, m.Cost.Weight, want)
		}
	}
}

// Whoever misspells a method learns why its credits are not what they should be.
func TestCreditsOfUnservedMethodsAreTold(t *testing.T) {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	serving := func(name string) gateway.Network {
		handler := func(_ context.Context, _, out []byte) ([]byte, error) { return out, nil }
		return gateway.Network{Methods: jsonrpctest.Methods(jsonrpc.Handlers{name: handler})}
	}
	c := config.Config{Credits: map[string]int{"eth_call": 7, "rollup_getEvents": 8, "eth_getlogs": 9, config.OtherCredits: 1}}
	warnOfCredits(&c, []gateway.Network{serving("eth_call"), serving("rollup_getEvents")})
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "method=eth_getlogs") {
		t.Errorf("logged: %s", text)
	}
}
