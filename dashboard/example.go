package dashboard

import (
	"fmt"
	"strings"
)

const (
	noAddress = `"0x0000000000000000000000000000000000000000"`
	noHash    = `"0x0000000000000000000000000000000000000000000000000000000000000000"`
)

// exampleRequest is a call of a method that the network can answer.
func exampleRequest(n *Network, method string) string {
	params, ok := exampleParams(n)[method]
	if !ok {
		params = "[]"
	}
	return fmt.Sprintf("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"method\": %q,\n  \"params\": %s\n}", method, params)
}

// exampleParams are parameters of methods that need some.
func exampleParams(n *Network) map[string]string {
	if n.Family == familyStarknet {
		return starknetParams()
	}
	head := noHash
	if n.HeadHash != "" {
		head = `"` + n.HeadHash + `"`
	}
	call := `{"from": ` + noAddress + `, "to": ` + noAddress + `, "data": "0x"}`
	return map[string]string{
		"eth_getBlockByNumber":                    `["latest", false]`,
		"eth_getBlockByHash":                      `[` + head + `, false]`,
		"eth_getBlockReceipts":                    `["latest"]`,
		"eth_getTransactionByHash":                `[` + noHash + `]`,
		"eth_getTransactionReceipt":               `[` + noHash + `]`,
		"eth_getRawTransactionByHash":             `[` + noHash + `]`,
		"eth_getTransactionByBlockHashAndIndex":   `[` + head + `, "0x0"]`,
		"eth_getTransactionByBlockNumberAndIndex": `["latest", "0x0"]`,
		"eth_getBalance":                          `[` + noAddress + `, "latest"]`,
		"eth_getCode":                             `[` + noAddress + `, "latest"]`,
		"eth_getTransactionCount":                 `[` + noAddress + `, "latest"]`,
		"eth_getStorageAt":                        `[` + noAddress + `, "0x0", "latest"]`,
		"eth_getProof":                            `[` + noAddress + `, [], "latest"]`,
		"eth_getLogs":                             `[{"fromBlock": "latest", "toBlock": "latest"}]`,
		"eth_call":                                `[` + call + `, "latest"]`,
		"eth_estimateGas":                         `[` + call + `]`,
		"eth_createAccessList":                    `[` + call + `, "latest"]`,
		"eth_feeHistory":                          `["0x5", "latest", [25, 75]]`,
		"web3_sha3":                               `["0x68656c6c6f"]`,
		"rollup_getEvents":                        eventParams(),
		"eth_getBlockTransactionCountByHash":      `[` + head + `]`,
		"eth_getBlockTransactionCountByNumber":    `["latest"]`,
		"eth_getUncleCountByBlockHash":            `[` + head + `]`,
		"eth_getUncleCountByBlockNumber":          `["latest"]`,
		"eth_getUncleByBlockHashAndIndex":         `[` + head + `, "0x0"]`,
		"eth_getUncleByBlockNumberAndIndex":       `["latest", "0x0"]`,
		"debug_getRawHeader":                      `["latest"]`,
		"debug_getRawBlock":                       `["latest"]`,
		"debug_getRawReceipts":                    `["latest"]`,
		"debug_getRawTransaction":                 `[` + noHash + `]`,
	}
}

func eventParams() string {
	return indented(`{`, `  "filter": {`, `    "from_block": "latest",`, `    "to_block": "latest",`, `    "chunk_size": 10`, `  }`, `}`)
}

func starknetParams() map[string]string {
	return map[string]string{
		"rollup_getEvents":               eventParams(),
		"starknet_getEvents":             eventParams(),
		"starknet_getBlockWithTxHashes":  `["latest"]`,
		"starknet_getTransactionReceipt": `["0x1"]`,
	}
}

// indented joins lines that stand within a request.
func indented(all ...string) string { return strings.Join(all, "\n  ") }
