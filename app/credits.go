package app

import (
	"log/slog"
	"maps"
	"slices"

	"ashlar/app/config"
	"ashlar/gateway"
)

// otherCredits is the name under which the configuration sets what methods cost that
// nothing else is said of.
const otherCredits = "other"

// builtInCosts is what calls of methods take where the configuration says nothing: the
// credits are about what a call takes of the machine in comparison with reading one
// value, and heavy are methods of which a single call can keep a processor busy for
// long. docs/methods.md shows both.
func builtInCosts() map[string]gateway.Cost {
	return map[string]gateway.Cost{
		otherCredits: {Credits: 10},

		"eth_chainId": {Credits: 1}, "net_version": {Credits: 1}, "net_listening": {Credits: 1}, "net_peerCount": {Credits: 1},
		"web3_clientVersion": {Credits: 1}, "web3_sha3": {Credits: 1}, "eth_syncing": {Credits: 1}, "eth_accounts": {Credits: 1},
		"rpc_modules": {Credits: 1}, "eth_capabilities": {Credits: 1}, "eth_config": {Credits: 1}, "eth_blockNumber": {Credits: 1},

		"eth_getProof": {Credits: 20}, "eth_getStorageValues": {Credits: 20}, "debug_getRawBlock": {Credits: 20},
		"eth_getBlockByHash": {Credits: 20}, "eth_getBlockByNumber": {Credits: 20},
		"txpool_contentFrom": {Credits: 20}, // of one sender: about as much as a block
		"eth_call":           {Credits: 20, Heavy: true}, "eth_feeHistory": {Credits: 20, Heavy: true},
		// It is asked again and again, mostly for little, but can answer as much as eth_getLogs.
		"eth_getFilterChanges": {Credits: 20, Heavy: true},

		"eth_estimateGas": {Credits: 50, Heavy: true}, "eth_createAccessList": {Credits: 50, Heavy: true},
		"eth_getBlockReceipts": {Credits: 50, Heavy: true}, "debug_getRawReceipts": {Credits: 50, Heavy: true},
		"eth_getLogs": {Credits: 50, Heavy: true}, "eth_getFilterLogs": {Credits: 50, Heavy: true}, // the same query
		"rollup_getEvents": {Credits: 50, Heavy: true}, "starknet_getEvents": {Credits: 50, Heavy: true},
		"txpool_content": {Credits: 50, Heavy: true}, // all of the pool
		// Perhaps with blobs. It is not heavy: nearly all of its calls only wait for a node,
		// and the proofs of blobs, which others bring, have one place of their own in the pool.
		"eth_sendRawTransaction": {Credits: 50},
	}
}

// costs is what each method's calls take.
func costs(c *config.Config) func(method string) gateway.Cost {
	all := builtInCosts()
	for method, n := range c.Credits {
		all[method] = gateway.Cost{Credits: n, Heavy: all[method].Heavy}
	}
	return func(method string) gateway.Cost {
		if cost, ok := all[method]; ok {
			return cost
		}
		return all[otherCredits]
	}
}

// warnOfCredits logs which methods have credits set that no network serves: they may be
// misspelled.
func warnOfCredits(c *config.Config, networks []gateway.Network) {
	for _, method := range slices.Sorted(maps.Keys(c.Credits)) {
		served := func(n gateway.Network) bool { return n.Methods[method] != nil }
		if method != otherCredits && !slices.ContainsFunc(networks, served) {
			slog.Warn("credits are set for a method that no network serves", "method", method)
		}
	}
}
