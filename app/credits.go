package app

import (
	"errors"
	"fmt"

	"ashlar/gateway"
)

// otherCredits is the name under which the configuration sets what methods cost that
// nothing else is said of.
const otherCredits = "other"

// builtInCredits is what calls cost where the configuration says nothing: about what
// they take of the machine in comparison with reading one value. docs/methods.md
// shows it.
func builtInCredits() map[string]int {
	return map[string]int{
		otherCredits: 10,

		"eth_chainId": 1, "net_version": 1, "net_listening": 1, "net_peerCount": 1, "web3_clientVersion": 1,
		"web3_sha3": 1, "eth_syncing": 1, "eth_accounts": 1, "rpc_modules": 1, "eth_capabilities": 1, "eth_config": 1,
		"eth_blockNumber": 1,

		"eth_call": 20, "eth_getProof": 20, "eth_feeHistory": 20, "eth_getStorageValues": 20,
		"eth_getBlockByHash": 20, "eth_getBlockByNumber": 20,
		"eth_estimateGas": 50, "eth_createAccessList": 50, "eth_getBlockReceipts": 50, "eth_getLogs": 50,
		"debug_getRawBlock": 20, "debug_getRawReceipts": 50,
		"eth_sendRawTransaction": 50, // perhaps with blobs
		"rollup_getEvents":       50, "starknet_getEvents": 50,
	}
}

// heavyMethods are those of which a single call can keep a processor busy for long.
// eth_sendRawTransaction is none of them: nearly all of its calls only wait for a node,
// and the proofs of blobs, which others bring, have one place of their own in the pool.
func heavyMethods() map[string]bool {
	return map[string]bool{
		"eth_call": true, "eth_estimateGas": true, "eth_createAccessList": true,
		"eth_getLogs": true, "eth_getBlockReceipts": true, "debug_getRawReceipts": true, "eth_getFilterLogs": true,
		"rollup_getEvents": true, "starknet_getEvents": true, "eth_feeHistory": true,
	}
}

// costs is what each method's calls take.
func (c *Config) costs() func(method string) gateway.Cost {
	credits, heavy := builtInCredits(), heavyMethods()
	for method, n := range c.Credits {
		credits[method] = n
	}
	return func(method string) gateway.Cost {
		n, ok := credits[method]
		if !ok {
			n = credits[otherCredits]
		}
		return gateway.Cost{Credits: n, Heavy: heavy[method]}
	}
}

func checkCredits(credits map[string]int) error {
	var problems []error
	for method, n := range credits {
		if n < 0 || n > 1_000_000 {
			problems = append(problems, fmt.Errorf("%s costs %d credits: expected from 0 to 1000000", method, n))
		}
	}
	return errors.Join(problems...)
}
