package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// specified lists what the specification of the execution API (ethereum/execution-apis,
// commit 033ca6e6) says of the methods that it has in common with this API: the names of
// parameters in their order, in parentheses where they may be left out.
const specified = `
debug_getRawBlock: Block
debug_getRawBlockAccessList: Block
debug_getRawHeader: Block
debug_getRawReceipts: Block
debug_getRawTransaction: Transaction hash
eth_accounts:
eth_baseFee:
eth_blobBaseFee:
eth_blockNumber:
eth_call: Transaction, (Block)
eth_capabilities:
eth_chainId:
eth_config:
eth_createAccessList: Transaction, (Block)
eth_estimateGas: Transaction, (Block)
eth_feeHistory: blockCount, newestBlock, rewardPercentiles
eth_gasPrice:
eth_getBalance: Address, (Block)
eth_getBlockAccessList: Block
eth_getBlockByHash: Block hash, Hydrated transactions
eth_getBlockByNumber: Block, Hydrated transactions
eth_getBlockReceipts: Block
eth_getBlockTransactionCountByHash: (Block hash)
eth_getBlockTransactionCountByNumber: (Block)
eth_getCode: Address, (Block)
eth_getFilterChanges: Filter identifier
eth_getFilterLogs: Filter identifier
eth_getLogs: Filter
eth_getProof: Address, StorageKeys, (Block)
eth_getStorageAt: Address, Storage slot, (Block)
eth_getStorageValues: Requests, (Block)
eth_getTransactionByBlockHashAndIndex: Block hash, Transaction index
eth_getTransactionByBlockNumberAndIndex: Block, Transaction index
eth_getTransactionByHash: Transaction hash
eth_getTransactionCount: Address, (Block)
eth_getTransactionReceipt: Transaction hash
eth_maxPriorityFeePerGas:
eth_newBlockFilter:
eth_newFilter: Filter
eth_newPendingTransactionFilter:
eth_sendRawTransaction: Transaction
eth_syncing:
eth_uninstallFilter: Filter identifier
net_version:
txpool_content:
txpool_contentFrom: address
txpool_status:`

// differing are the parameters that are required by one side alone. geth requires the
// block of the counts, which clients were written against, and can do without the
// percentiles.
var differing = map[string]bool{
	"eth_getBlockTransactionCountByHash Block hash": true, "eth_getBlockTransactionCountByNumber Block": true,
	"eth_feeHistory rewardPercentiles": true,
}

// TestExecutionAPIs: where the specification has a method, its parameters have the same
// names here, in the same order, and the same of them are required. Parameters of geth's
// may follow, if they are optional.
func TestExecutionAPIs(t *testing.T) {
	methods := described(t)
	used := make(map[string]bool)
	for _, line := range strings.Split(strings.TrimSpace(specified), "\n") {
		name, list, _ := strings.Cut(line, ":")
		method := methods.Find(name)
		if method == nil {
			t.Errorf("%s is not served", name)
			continue
		}
		wanted := slices.DeleteFunc(strings.Split(strings.TrimSpace(list), ", "), func(s string) bool { return s == "" })
		if len(method.Params) < len(wanted) {
			t.Errorf("%s has %d parameters, want %d", name, len(method.Params), len(wanted))
			continue
		}
		for i, p := range method.Params {
			if i >= len(wanted) {
				if p.Required {
					t.Errorf("%s requires %s, which is not specified", name, p.Name)
				}
				continue
			}
			required := !strings.HasPrefix(wanted[i], "(")
			if want := strings.Trim(wanted[i], "()"); p.Name != want {
				t.Errorf("%s: parameter %d is %s, want %s", name, i, p.Name, want)
			}
			if place := name + " " + p.Name; (p.Required != required) != differing[place] {
				t.Errorf("%s: %s is required: %t, specified: %t", name, p.Name, p.Required, required)
			} else if differing[place] {
				used[place] = true
			}
		}
	}
	if len(used) != len(differing) {
		t.Errorf("of the differences %v there are %v", differing, used)
	}
}

// TestParametersAreAsDescribed: a method requires as many arguments as its description
// says, and takes no more than it has parameters.
func TestParametersAreAsDescribed(t *testing.T) {
	for method := range described(t).All() {
		if method.Stream || method.ByName {
			continue
		}
		required := 0
		for _, p := range method.Params {
			if p.Required {
				required++
			}
		}
		called := func(arguments int) string {
			params := "[" + strings.TrimSuffix(strings.Repeat(`"x",`, arguments), ",") + "]"
			_, err := method.Handler(t.Context(), []byte(params), nil)
			if err == nil {
				return ""
			}
			return err.Error()
		}
		if got, want := called(len(method.Params)+1), fmt.Sprintf("too many arguments, want at most %d", len(method.Params)); got != want {
			t.Errorf("%s with an argument too many: %q, want %q", method.Name, got, want)
		}
		if required == 0 {
			continue
		}
		if got, want := called(required-1), fmt.Sprintf("missing value for required argument %d", required-1); got != want {
			t.Errorf("%s with an argument too few: %q, want %q", method.Name, got, want)
		}
		if got := called(required); strings.Contains(got, "missing value") {
			t.Errorf("%s with %d arguments: %s", method.Name, required, got)
		}
	}
}
