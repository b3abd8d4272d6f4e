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
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"
	starknetapi "ashlar/starknet/api"
	"ashlar/starknet/archive"
	starknetquery "ashlar/starknet/query"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/params"
)

// What may read many blocks, run something, or answer very much waits in the line of
// heavy calls; what does the same as another method costs the same.
func TestCosts(t *testing.T) {
	cost := costs(&config.Config{Credits: map[string]int{"eth_call": 7, "eth_chainId": 0}})
	for method, want := range map[string]gateway.Cost{
		"eth_call": {Credits: 7, Heavy: true}, "eth_feeHistory": {Credits: 20, Heavy: true},
		"eth_getLogs": {Credits: 50, Heavy: true}, "eth_getFilterLogs": {Credits: 50, Heavy: true},
		"eth_getFilterChanges": {Credits: 20, Heavy: true}, "rollup_getEvents": {Credits: 50, Heavy: true},
		"txpool_content": {Credits: 50, Heavy: true}, "txpool_contentFrom": {Credits: 20}, "txpool_status": {Credits: 10},
		"eth_getBalance": {Credits: 10}, "eth_getBlockByNumber": {Credits: 20}, "eth_chainId": {}, "made_up": {Credits: 10},
	} {
		if got := cost(method); got != want {
			t.Errorf("%s costs %+v, want %+v", method, got, want)
		}
	}
}

// A name that is misspelled, or of a method that is gone, would leave another without
// its price.
func TestPricedMethodsAreServed(t *testing.T) {
	executor, err := execute.New(params.MainnetChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	stored, err := archive.Create(t.Context(), store, "SN_MAIN")
	if err != nil {
		t.Fatal(err)
	}
	ofEVM := api.New(query.NewChain(nil, nil, executor), api.Config{}).Methods()
	ofStarknet := starknetapi.New(starknetquery.NewChain(stored, nil)).Methods()
	for method := range builtInCosts() {
		if method != otherCredits && ofEVM[method] == nil && ofStarknet[method] == nil {
			t.Errorf("%s has a price and is not served", method)
		}
	}
}

// Whoever misspells a method learns why its credits are not what they should be.
func TestCreditsOfUnservedMethodsAreTold(t *testing.T) {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	method := func(_ context.Context, _, out []byte) ([]byte, error) { return out, nil }
	networks := []gateway.Network{{Methods: jsonrpc.Handlers{"eth_call": method}}, {Methods: jsonrpc.Handlers{"rollup_getEvents": method}}}
	c := config.Config{Credits: map[string]int{"eth_call": 7, "rollup_getEvents": 8, "eth_getlogs": 9, otherCredits: 1}}
	warnOfCredits(&c, networks)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "method=eth_getlogs") {
		t.Errorf("logged: %s", text)
	}
}
