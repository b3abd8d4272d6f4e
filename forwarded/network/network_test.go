package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/forwarded/forwardtest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// A network answers whatever its nodes do: one is down, one of another chain.
func TestAnswers(t *testing.T) {
	chain := forwardtest.Chain{Head: 1000, Final: 900, LogsPer: 2}
	down, other, good := node(t, chain), node(t, chain), node(t, chain)
	down.Close()
	other.ChainID = 8
	w := serve(t, newStore(t), func(e *Entries) { e.ChainID, e.Methods = 7, []string{"arb_test"} }, down, other, good)
	hash := func(number uint64) string { return fmt.Sprintf("%#x", chain.Hash(number)) }
	for _, c := range []struct{ method, params, want string }{
		{"eth_chainId", `[]`, `"0x7"`},
		{"net_version", `[]`, `"7"`},
		{"eth_blockNumber", `[]`, `"0x3e8"`},
		{"eth_syncing", `[]`, `false`},
		{"eth_getBlockByNumber", `["latest",false]`, `…"hash":"` + hash(1000)},
		{"eth_getBlockByNumber", `["safe",false]`, `…"hash":"` + hash(900)},
		{"eth_getBlockByNumber", `["finalized",false]`, `…"hash":"` + hash(900)},
		{"eth_getBlockByNumber", `["earliest",false]`, `…"hash":"` + hash(0)},
		{"eth_getBlockByNumber", `["0x3E7",false]`, `…"l1Fee":"0x1"`},
		{"eth_getBlockByNumber", `["0x3e9",false]`, `null`},
		{"eth_getBlockByNumber", `["new",false]`, "-32602 invalid argument 0: hex string without 0x prefix expected a block number such as \"0x1b4\", or latest, earliest, pending, safe or finalized"},
		{"eth_getBlockByNumber", `["0x1"]`, `-32602 missing value for required argument 1`},
		{"eth_getBlockByHash", `["` + hash(5) + `",false]`, `…"number":"0x5"`},
		{"eth_getBlockByHash", `["0x` + strings.Repeat("1", 64) + `",false]`, `null`},
		{"eth_getBlockByHash", `["0x12",false]`, `-32602 invalid argument 0: hex string has length 2, want 64 for common.Hash`},
		{"eth_getBlockReceipts", `["0x3e8"]`, `…"blockHash":"` + hash(1000)},
		{"eth_getBlockReceipts", `["0x5"]`, `…"blockHash":"` + hash(5)},
		{"eth_getBlockReceipts", `["0x3e9"]`, `null`},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1"]`, `"0xf4240"`},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1","0x10"]`, `"0x3e80"`},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1",{"blockHash":"` + hash(16) + `"}]`, `"0x3e80"`},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1","0x3e9"]`, `-32000 header not found`},
		{"eth_call", `[{"to":"0x00000000000000000000000000000000000000e1"},"pending"]`, `"0xf4240"`},
		{"eth_gasPrice", `[]`, `"0x3e8"`},
		{"eth_getTransactionReceipt", `["0x` + strings.Repeat("1", 64) + `"]`, `null`},
		{"arb_test", `[]`, `-32601 the method is not available: no upstream node has it`},
		{"arb_test", `[]`, `-32601 the method is not available: no upstream node has it`},
	} {
		w.expect(c.method, c.params, c.want)
	}
	if other.Count("eth_getBlockByHash") > 0 {
		t.Error("the node of another chain was asked")
	}
}

// Requests before the first head wait for it.
func TestWaitsForTheFirstHead(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10})
	begin := make(chan struct{})
	n.Between = func(http.ResponseWriter, *http.Request) bool { <-begin; return false }
	w := serve(t, newStore(t), nil, n)
	time.AfterFunc(50*time.Millisecond, func() { close(begin) })
	w.expect("eth_blockNumber", "[]", `"0xa"`)
}

// A head that a node names is followed; it does not go back when a node falls behind.
func TestHeadDoesNotGoBack(t *testing.T) {
	a, b := node(t, forwardtest.Chain{Head: 10}), node(t, forwardtest.Chain{Head: 12})
	w := serve(t, newStore(t), nil, a, b)
	w.atHead(12)
	b.Set(func(n *forwardtest.Node) { n.Chain.Head = 9 })
	asked := b.Count("eth_getBlockByNumber")
	w.until("the node has been polled", func() bool { return b.Count("eth_getBlockByNumber") > asked+3 })
	w.expect("eth_blockNumber", "[]", `"0xc"`)
	a.Set(func(n *forwardtest.Node) { n.Chain.Head = 13 })
	w.atHead(13)
	w.expect("eth_getBalance", `["0x00000000000000000000000000000000000000e1","latest"]`, fmt.Sprintf(`"%#x"`, 13000))
}

// A reorganization is followed: answers about the replaced blocks change.
func TestReorganization(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 12, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(12)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 13 })
	before := w.call("eth_getBlockByNumber", `["0xb",false]`)
	logs := w.call("eth_getLogs", `[{"fromBlock":"0xb","toBlock":"0xb"}]`)
	n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork, n.Chain.Head = "b", 11, 13 })
	w.atHead(13)
	if after := w.call("eth_getBlockByNumber", `["0xb",false]`); after == before || !strings.HasPrefix(after, "{") {
		t.Errorf("block 11 is still %s", after)
	}
	if after := w.call("eth_getLogs", `[{"fromBlock":"0xb","toBlock":"0xb"}]`); after == logs || !strings.HasPrefix(after, "[{") {
		t.Errorf("the logs of block 11 are still %s", after)
	}
}

// Answers about final blocks are asked for once, even by the next server; null and answers
// about newer blocks are asked for again when the head has moved.
func TestStoredAnswers(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 100, Final: 90, LogsPer: 1})
	store := newStore(t)
	final := []struct{ method, params string }{
		{"eth_getBlockByNumber", `["0x5",false]`},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1","0x5"]`},
		{"eth_getBlockReceipts", `["0x5"]`},
		{"eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x9"}]`},
		{"eth_getBlockByHash", fmt.Sprintf(`["%#x",false]`, n.Chain.Hash(7))},
	}
	for round := range 3 {
		w := serve(t, store, nil, n)
		w.atHead(100)
		w.until("the final block is known", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
		counts := make(map[string]int)
		for _, q := range final {
			counts[q.method] = n.Count(q.method)
		}
		for _, q := range final {
			if got := w.call(q.method, q.params); len(got) < 5 || got[0] == '-' {
				t.Errorf("%s: %s", q.method, got)
			}
		}
		for _, q := range final {
			if asked := n.Count(q.method) - counts[q.method]; q.method != "eth_getBlockByNumber" && (asked == 0) != (round > 0) {
				t.Errorf("round %d: %s was asked %d times", round, q.method, asked)
			}
		}
		w.stop()
	}
	w := serve(t, store, nil, n)
	w.atHead(100)
	missing := fmt.Sprintf(`["0x%064x"]`, 1)
	for range 2 {
		w.expect("eth_getTransactionReceipt", missing, "null")
		w.expect("eth_gasPrice", "[]", fmt.Sprintf(`"%#x"`, n.Chain.Head))
	}
	if n.Count("eth_getTransactionReceipt") != 2 || n.Count("eth_gasPrice") != 1 {
		t.Errorf("asked %d and %d times, expected 2 and 1", n.Count("eth_getTransactionReceipt"), n.Count("eth_gasPrice"))
	}
	n.Set(func(n *forwardtest.Node) { n.Chain.Head = 101 })
	w.atHead(101)
	w.expect("eth_gasPrice", "[]", `"0x65"`)
}

// Whatever a node says, the error has the form of the specification.
func TestErrors(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10})
	w := serve(t, newStore(t), nil, n)
	w.atHead(10)
	payload := "0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000568656c6c6f000000000000000000000000000000000000000000000000000000"
	for i, c := range []struct {
		fault forwardtest.Error
		want  string
	}{
		{forwardtest.Error{Code: 3, Message: "execution reverted: hello", Data: payload}, "3 execution reverted: hello " + payload},
		{forwardtest.Error{Code: 3, Message: "execution reverted", Data: "0x"}, "3 execution reverted 0x"},
		{forwardtest.Error{Code: -32015, Message: "VM execution error.", Data: "Reverted " + payload}, "3 execution reverted: hello " + payload},
		{forwardtest.Error{Code: -32000, Message: "execution reverted: hello"}, "3 execution reverted: hello"},
		{forwardtest.Error{Code: -32603, Message: "Error: VM Exception while processing transaction: reverted", Data: map[string]string{"data": payload}}, "3 execution reverted: hello " + payload},
		{forwardtest.Error{Code: -32000, Message: "missing trie node 12 (path )"}, "4444 pruned history unavailable: block or historical state is not available"},
		{forwardtest.Error{Code: -32602, Message: "invalid argument 0: bad"}, "-32602 invalid argument 0: bad"},
		{forwardtest.Error{Code: -32010, Message: "insufficient funds for gas * price + value"}, "-32000 insufficient funds for gas * price + value"},
		{forwardtest.Error{Code: -32603, Message: "http://10.0.0.1/secret is down"}, "-32000 no upstream node can answer now: try again later"},
	} {
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
				return nil, &c.fault, method == "eth_call"
			}
		})
		w.expect("eth_call", fmt.Sprintf(`[{"to":"0x00000000000000000000000000000000000000e1","nonce":"%#x"},"latest"]`, i), c.want)
	}
}

// A node that does not have an old block has removed it if the block is of the chain. One that does not have a new
// block is late, or on another branch. If only the client names the block, there may be none.
func TestUnknownBlock(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 100})
	w := serve(t, newStore(t), func(e *Entries) { e.Methods = []string{"debug_traceBlockByNumber"} }, n)
	w.atHead(100)
	account, hash := `"0x00000000000000000000000000000000000000e1"`, `{"blockHash":"0x`+strings.Repeat("1", 64)+`"}`
	for _, c := range []struct{ message, method, params, want string }{
		{"header not found", "eth_getBalance", `[` + account + `,"0x5"]`, "4444 pruned history unavailable: block or historical state is not available"},
		{"header for hash not found", "eth_getBalance", `[` + account + `,"latest"]`, "-32000 no upstream node can answer now: try again later"},
		{"missing trie node 12 (path )", "eth_getBalance", `[` + account + `,"latest"]`, "4444 pruned history unavailable: block or historical state is not available"},
		{"header for hash not found", "eth_getBalance", `[` + account + `,` + hash + `]`, "-32000 header for hash not found"},
		{"hash is not currently canonical", "eth_getBalance", `[` + account + `,` + hash + `]`, "-32000 hash is not currently canonical"},
		{"missing trie node 12 (path )", "eth_getBalance", `[` + account + `,` + hash + `]`, "4444 pruned history unavailable: block or historical state is not available"},
		{"header for hash not found", "eth_getLogs", `[` + hash + `]`, "-32000 unknown block"},
		{"finalized block not found", "debug_traceBlockByNumber", `["finalized"]`, "-32000 finalized block not found"},
	} {
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
				return nil, &forwardtest.Error{Code: -32000, Message: c.message}, method == c.method
			}
		})
		w.expect(c.method, c.params, c.want)
	}
}

// A transaction goes to three nodes.
func TestSend(t *testing.T) {
	var nodes []*forwardtest.Node
	for range 4 {
		nodes = append(nodes, node(t, forwardtest.Chain{Head: 10}))
	}
	w := serve(t, newStore(t), nil, nodes...)
	w.allUsed()
	w.expect("eth_sendRawTransaction", `["0x1234"]`, `…"0x`)
	w.until("three nodes have it", func() bool {
		count := 0
		for _, n := range nodes {
			count += n.Count("eth_sendRawTransaction")
		}
		return count == 3
	})
}

// A client whose transaction a node may have taken is told so.
func TestSendWithoutAnswer(t *testing.T) {
	one := node(t, forwardtest.Chain{Head: 10})
	w := serve(t, newStore(t), nil, one)
	w.allUsed()
	one.Set(func(n *forwardtest.Node) {
		n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("eth_sendRawTransaction")) {
				panic(http.ErrAbortHandler)
			}
			return false
		}
	})
	w.expect("eth_sendRawTransaction", `["0x1234"]`, "-32000 no node confirmed the transaction: one broke off before its answer and may have taken it: sending the same transaction again is harmless")
}

// A transaction that one node has not answered, and another one has, is sent: the client gets its hash.
func TestSendKnown(t *testing.T) {
	lost, other := node(t, forwardtest.Chain{Head: 10}), node(t, forwardtest.Chain{Head: 10})
	w := serve(t, newStore(t), nil, lost, other)
	w.allUsed()
	for n, e := range map[*forwardtest.Node]forwardtest.Error{lost: {Code: -32002, Message: "request timed out"}, other: {Code: -32000, Message: "already known"}} {
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
				return nil, &e, method == "eth_sendRawTransaction"
			}
		})
	}
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	tx := types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{Gas: 21_000})
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	w.expect("eth_sendRawTransaction", fmt.Sprintf(`["%#x"]`, raw), `"`+tx.Hash().Hex()+`"`)
	w.expect("eth_sendRawTransaction", `["0x7f12"]`, "-32000 already known") // of a type that only the chain has
}

// A node that sends another block is set aside, and the answer comes from another one.
func TestAnotherBlock(t *testing.T) {
	chain := forwardtest.Chain{Head: 1000, Final: 900}
	liar, good := node(t, chain), node(t, chain)
	w := serve(t, newStore(t), func(e *Entries) { e.Upstream[1].Backup = true }, liar, good)
	w.allUsed()
	w.atHead(1000)
	liar.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
			lie := method == "eth_getBlockByNumber" && string(params[0])[:3] == `"0x`
			return map[string]any{"number": "0x1", "hash": chain.Hash(1), "parentHash": chain.Hash(0)}, nil, lie
		}
	})
	for number := range uint64(20) {
		w.expect("eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, 100+number), fmt.Sprintf(`…"hash":"%#x"`, chain.Hash(100+number)))
	}
	status, _ := w.network.Status(t.Context())
	if u := status.Source.Upstreams[0]; u.Invalid != 1 || u.Used {
		t.Errorf("the node that lied: %+v", u)
	}
}

// Stored answers are of one chain.
func TestStoreOfAnotherChain(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10})
	store := newStore(t)
	w := serve(t, store, nil, n)
	w.atHead(10)
	w.until("the chain is stored", func() bool { id, _ := w.network.archive.ChainID(t.Context()); return id == 7 })
	w.stop()
	e := Family{}.Entries().(*Entries)
	e.Upstream, e.ChainID = w.network.entries.Upstream, 8
	if _, err := (Family{}).Open(t.Context(), store, e, false); err == nil || !strings.Contains(err.Error(), "of chain 7") {
		t.Errorf("opened with another chain: %v", err)
	}
}

// A node on another branch, which is not followed because its head is lower, may call a block of
// its branch final. That does not make the block final that is served at this number.
func TestFinalBlockOfAnotherBranch(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 20, Final: 10})
	w := serve(t, newStore(t), nil, n)
	w.atHead(20)
	w.until("block 10 is final", func() bool {
		view := w.network.follower.View()
		return view.IsFinal(10) && len(view.Blocks()) == 21
	})
	n.Set(func(n *forwardtest.Node) { n.Chain = forwardtest.Chain{Head: 18, Fork: 16, Branch: "b", Final: 17} })
	w.until("the node names its final block", func() bool { return w.network.pool.Status()[0].Head.Finalized.Number == 17 })
	before := n.Count("eth_getBlockByNumber")
	w.until("the node was asked again", func() bool { return n.Count("eth_getBlockByNumber") > before+3 })
	w.expect("eth_getBlockByNumber", `["0x11",false]`, "-32000 no upstream node can answer now: try again later")
	if s := w.network.pool.Status()[0]; s.Lies != 0 || w.network.follower.View().IsFinal(17) {
		t.Errorf("the node is taken for a liar, or block 17 for final: %+v", s)
	}
}
