package network

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/forwarded/forwardtest"
)

// besideTheHead serves a network at head 20 with a node that is asked first, and has another head of the same number, without
// logs.
func besideTheHead(t *testing.T) (w *world, beside, good *forwardtest.Node) {
	t.Helper()
	chain := forwardtest.Chain{Head: 19, LogsPer: 1}
	beside, good = node(t, chain), node(t, chain)
	w = serve(t, newStore(t), func(e *Entries) { e.Upstream[1].Backup = true }, beside, good)
	w.allUsed()
	w.atHead(19)
	good.Set(func(n *forwardtest.Node) { n.Chain.Head = 20 })
	w.atHead(20)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 21 })
	beside.Set(func(n *forwardtest.Node) {
		n.Chain = forwardtest.Chain{Head: 20, Fork: 20, Branch: "b", Quiet: true, LogsPer: 1}
	})
	w.until("the other head is seen", func() bool { return w.network.pool.Status()[0].Head.Number == 20 })
	return w, beside, good
}

// A node on another branch leaves out logs of the chain without saying so.
func TestLogsOfANodeOnAnotherBranch(t *testing.T) {
	w, beside, good := besideTheHead(t)
	last := fmt.Sprintf(`…"blockHash":"%#x"`, good.Chain.Hash(20))
	w.expect("eth_getLogs", `[{"fromBlock":"0x14","toBlock":"0x14"}]`, last)
	w.expect("eth_getLogs", `[{"fromBlock":"0x12"}]`, last)
	w.expect("rollup_getEvents", `[{"from_block":{"block_number":18},"to_block":"latest","chunk_size":10}]`, fmt.Sprintf(`…"block_hash":"%#x"`, good.Chain.Hash(20)))
	w.expect("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"0x12","topics":["%#x"]}]`, forwardtest.Topic(1)), "[]")
	if beside.Count("eth_getLogs") == 0 {
		t.Error("the node on the other branch was not asked")
	}
}

// Logs that all nodes know are asked for once: the last one shows the node's branch, and the bloom filters show that no other block
// has any.
func TestLogsUpToTheHeadAreAskedForOnce(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 20, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(20)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 21 })
	for _, wanted := range []string{
		`{"fromBlock":"0x12"}`, `{"fromBlock":"0x14"}`, fmt.Sprintf(`{"fromBlock":"0x0","topics":["%#x"]}`, forwardtest.Topic(1)),
	} {
		before := n.Count("eth_getLogs")
		w.call("eth_getLogs", `[`+wanted+`]`)
		if asked := n.Count("eth_getLogs") - before; asked != 1 {
			t.Errorf("%s: asked for %d times, expected once", wanted, asked)
		}
	}
}

// A node that takes no hash of a block in eth_getLogs is asked by number, and believed.
func TestLogsOfANodeThatTakesNoHash(t *testing.T) {
	for _, fault := range []forwardtest.Error{
		{Code: -32602, Message: "invalid params: expected fromBlock and toBlock"},
		{Code: -32601, Message: "blockHash is not supported"},
		{Code: -32000, Message: "eth_getLogs by blockHash is not implemented"},
	} {
		n := node(t, forwardtest.Chain{Head: 20, LogsPer: 1})
		w := serve(t, newStore(t), nil, n)
		w.atHead(20)
		w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 21 })
		quiet := false
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
				switch byHash := method == "eth_getLogs" && strings.Contains(string(params[0]), "blockHash"); {
				case byHash:
					return nil, &fault, true
				default:
					return []any{}, nil, method == "eth_getLogs" && quiet
				}
			}
		})
		w.expect("eth_getLogs", `[{"fromBlock":"0x14","toBlock":"0x14"}]`, fmt.Sprintf(`…"blockHash":"%s"`, n.Chain.Hash(20)))
		n.Set(func(*forwardtest.Node) { quiet = true })
		w.expect("eth_getLogs", `[{"fromBlock":"0x11","toBlock":"0x13"}]`, "[]")
	}
}

// A node on another branch does not have a block of the chain. It says null, which does not mean that there is none.
func TestBlockThatANodeDoesNotHave(t *testing.T) {
	w, beside, good := besideTheHead(t)
	hash := good.Chain.Hash(20)
	w.expect("eth_getBlockByHash", fmt.Sprintf(`["%#x",false]`, hash), fmt.Sprintf(`…"hash":"%#x"`, hash))
	w.expect("eth_getBlockTransactionCountByHash", fmt.Sprintf(`["%#x"]`, hash), `"0x1"`)
	w.expect("eth_getUncleCountByBlockHash", fmt.Sprintf(`["%#x"]`, hash), `"0x0"`)
	w.expect("eth_getBlockByHash", fmt.Sprintf(`["%#x",false]`, beside.Chain.Hash(20)), `…"number":"0x14"`)
}

// A transaction in a block beside the chain is not included.
func TestTransactionBesideTheChain(t *testing.T) {
	w, beside, good := besideTheHead(t)
	for _, method := range []string{"eth_getTransactionReceipt", "eth_getTransactionByHash"} {
		w.expect(method, fmt.Sprintf(`["%#x"]`, beside.Chain.Transaction(20)), "null")
		w.expect(method, fmt.Sprintf(`["%#x"]`, good.Chain.Transaction(19)), fmt.Sprintf(`…"blockHash":"%#x"`, good.Chain.Hash(19)))
	}
	good.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
			return map[string]any{"blockNumber": "0x14", "blockHash": beside.Chain.Hash(20)}, nil, method == "eth_getTransactionReceipt"
		}
	})
	w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["%#x"]`, beside.Chain.Transaction(20)), "null") // no node is on the chain
}

// A node that lags behind the head which it has named, as one of several behind a proxy does, says null for a transaction that the
// head has, or that it is pending. The others are asked, but not about a transaction that no block names.
func TestTransactionThatALateNodeDoesNotHave(t *testing.T) {
	chain := forwardtest.Chain{Head: 20}
	late, good := node(t, chain), node(t, chain)
	says := func(methods string, answer any) func(*forwardtest.Node) {
		return func(n *forwardtest.Node) {
			n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
				return answer, nil, strings.Contains(methods, method)
			}
		}
	}
	const both = "eth_getTransactionReceipt eth_getTransactionByHash"
	w := serve(t, newStore(t), func(e *Entries) { e.Upstream[1].Backup = true }, late, good)
	w.allUsed()
	w.atHead(20)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 21 })
	late.Set(says(both, nil))
	for number := uint64(19); number <= 20; number++ {
		params, want := fmt.Sprintf(`["%#x"]`, chain.Transaction(number)), fmt.Sprintf(`…"blockHash":"%#x"`, chain.Hash(number))
		w.expect("eth_getTransactionReceipt", params, want)
		w.expect("eth_getTransactionByHash", params, want)
	}
	asked := good.Count("eth_getTransactionReceipt")
	w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["0x%064x"]`, 1), "null")
	if again := good.Count("eth_getTransactionReceipt"); again != asked {
		t.Error("the other node was asked about a transaction that no block names")
	}
	late.Set(says("eth_getTransactionByHash", map[string]any{"blockNumber": nil, "blockHash": nil}))
	w.expect("eth_getTransactionByHash", fmt.Sprintf(`["%#x"]`, chain.Transaction(17)), fmt.Sprintf(`…"blockHash":"%#x"`, chain.Hash(17)))
	good.Set(says(both, nil))
	late.Set(says(both, nil))
	w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["%#x"]`, chain.Transaction(18)), "null") // no node has it
	good.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
			return nil, &forwardtest.Error{Code: -32603, Message: "internal error"}, strings.Contains(both, method)
		}
	})
	w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["%#x"]`, chain.Transaction(16)), "null") // the only node that answers does not have it
}

// The same where answers are checked: another node may have the transaction on the chain.
func TestCheckedTransactionBesideTheChain(t *testing.T) {
	blocks := emptyBlocks(t, 6)
	beside, good := nodeOf(t, blocks), nodeOf(t, blocks)
	usual := beside.Answer
	beside.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		if method == "eth_getTransactionByHash" {
			return map[string]any{"blockNumber": "0x5", "blockHash": fmt.Sprintf("0x%064x", 5)}, nil, true
		}
		return usual(method, params)
	}
	w := serve(t, newStore(t), func(e *Entries) { e.Checked, e.Upstream[1].Backup = checkHeaders, true }, beside, good)
	w.atHead(5)
	w.allUsed()
	w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["0x%064x"]`, 1), "null")
	if s := w.network.pool.Status()[0]; s.Lies != 0 || good.Count("eth_getTransactionByHash") != 1 {
		t.Errorf("the other node was asked %d times (want once), lies of the first one: %d (want none)", good.Count("eth_getTransactionByHash"), s.Lies)
	}
}
