package network

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"ashlar/forwarded/forwardtest"
)

// A range of logs that begins below the blocks of the nodes says nothing about its later blocks,
// which the nodes have.
func TestRangeBelowHistory(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 1000, Final: 990, LogsPer: 1})
	const first = 500 // block that the node has
	n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		var f struct{ FromBlock string }
		if method != "eth_getLogs" || json.Unmarshal(params[0], &f) != nil || f.FromBlock == "" {
			return nil, nil, false
		}
		from, err := strconv.ParseUint(f.FromBlock, 0, 64)
		return nil, &forwardtest.Error{Code: 4444, Message: "pruned history unavailable"}, err == nil && from < first
	}
	w := serve(t, newStore(t), nil, n)
	w.atHead(1000)
	w.expect("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"%#x","toBlock":"%#x"}]`, first-1, 900), "4444 pruned history unavailable: block or historical state is not available")
	w.expect("eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, first), fmt.Sprintf(`…"number":"%#x"`, first))
	w.expect("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"%#x","toBlock":"%#x"}]`, first, first+1), fmt.Sprintf(`…"blockNumber":"%#x"`, first))
}

// A range that begins below the blocks of the nodes is pruned, also if it ends with a new block.
func TestLogsBelowHistoryUpToTheHead(t *testing.T) {
	for _, said := range []forwardtest.Error{{Code: 4444, Message: "pruned history unavailable"}, {Code: -32000, Message: "header not found"}} {
		n := node(t, forwardtest.Chain{Head: 400})
		n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
			return nil, &said, method == "eth_getLogs"
		}
		w := serve(t, newStore(t), nil, n)
		w.atHead(400)
		for range 3 {
			w.expect("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"latest"}]`, "4444 pruned history unavailable: block or historical state is not available")
		}
	}
}

// A history of fees that begins below the blocks of the nodes says nothing about its later blocks.
func TestFeesBelowHistory(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 1000, Final: 990})
	n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
		return nil, &forwardtest.Error{Code: 4444, Message: "pruned history unavailable"}, method == "eth_feeHistory"
	}
	w := serve(t, newStore(t), nil, n)
	w.atHead(1000)
	w.expect("eth_feeHistory", `["0x65","0x258"]`, "4444 pruned history unavailable: block or historical state is not available")
	w.expect("eth_getBlockByNumber", `["0x1f5",false]`, `…"number":"0x1f5"`)
	w.expect("eth_feeHistory", `["many","0x258"]`, "…invalid hex or decimal integer")
}
