package network

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// emptyBlocks returns a chain of blocks without transactions, each as nodes send it.
func emptyBlocks(t *testing.T, count int) (blocks []map[string]any) {
	t.Helper()
	parent := common.Hash{}
	for i := range count {
		block := emptyBlock(t, int64(i), parent)
		blocks, parent = append(blocks, block), common.HexToHash(block["hash"].(string))
	}
	return blocks
}

// emptyBlock returns a block without transactions, as nodes send it.
func emptyBlock(t *testing.T, number int64, parent common.Hash) (block map[string]any) {
	t.Helper()
	header := &types.Header{
		Number: big.NewInt(number), ParentHash: parent, Difficulty: new(big.Int), TxHash: types.EmptyTxsHash,
		ReceiptHash: types.EmptyReceiptsHash, UncleHash: types.EmptyUncleHash, BaseFee: big.NewInt(1),
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &block); err != nil {
		t.Fatal(err)
	}
	block["transactions"], block["uncles"] = []any{}, []any{}
	return block
}

// nodeOf starts a node of some blocks, the last but one of which is final.
func nodeOf(t *testing.T, blocks []map[string]any) *forwardtest.Node {
	n := node(t, forwardtest.Chain{})
	n.Answer = answersOf(blocks)
	return n
}

func answersOf(blocks []map[string]any) func(string, []json.RawMessage) (any, *forwardtest.Error, bool) {
	return func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		find := func() map[string]any {
			var text string
			_ = json.Unmarshal(params[0], &text)
			for _, b := range blocks {
				if b["number"] == text || b["hash"] == text {
					return b
				}
			}
			switch text {
			case "latest":
				return blocks[len(blocks)-1]
			case "safe", "finalized":
				return blocks[len(blocks)-2]
			}
			return nil
		}
		switch method {
		case "eth_getBlockByNumber", "eth_getBlockByHash":
			if b := find(); b != nil {
				return b, nil, true
			}
			return nil, nil, true
		case "eth_getBlockReceipts":
			return []any{}, nil, true
		}
		return nil, nil, false
	}
}

// What is recomputed from headers is marked so, and nothing else. Without a check nothing is.
func TestVerification(t *testing.T) {
	blocks := emptyBlocks(t, 6)
	missing := fmt.Sprintf(`"0x%064x"`, 1)
	cases := []struct {
		method, params string
		want           jsonrpc.Verification
	}{
		{"eth_getBlockByNumber", `["0x1",true]`, jsonrpc.ByHeader},
		{"eth_getBlockByNumber", `["latest",false]`, jsonrpc.ByHeader},
		{"eth_getBlockByNumber", `["0x99",false]`, jsonrpc.Unverified},
		{"eth_getBlockByHash", fmt.Sprintf(`["%s",false]`, blocks[2]["hash"]), jsonrpc.ByHeader},
		{"eth_getBlockByHash", `[` + missing + `,false]`, jsonrpc.Unverified},
		{"eth_getBlockTransactionCountByNumber", `["0x1"]`, jsonrpc.ByHeader},
		{"eth_getBlockReceipts", `["0x5"]`, jsonrpc.ByHeader},
		{"eth_getLogs", `[{"fromBlock":"0x1","toBlock":"latest"}]`, jsonrpc.ByHeader},
		{"rollup_getEvents", `{"filter":{"from_block":{"block_number":1},"chunk_size":5}}`, jsonrpc.ByHeader},
		{"rollup_getEvents", fmt.Sprintf(`{"filter":{"to_block":{"block_hash":"%s"},"chunk_size":5}}`, blocks[4]["hash"]), jsonrpc.ByHeader},
		{"eth_getTransactionByHash", `[` + missing + `]`, jsonrpc.Unverified},
		{"eth_blockNumber", `[]`, jsonrpc.Unverified},
		{"eth_gasPrice", `[]`, jsonrpc.Unverified},
		{"eth_getBalance", `["0x00000000000000000000000000000000000000e1","0x0"]`, jsonrpc.Unverified},
		{"eth_newBlockFilter", `[]`, jsonrpc.Unverified},
		{"arb_test", `[]`, jsonrpc.Unverified},
	}
	for check, checked := range map[string]bool{checkNone: false, checkHeaders: true} {
		w := serve(t, newStore(t), func(e *Entries) { e.Checked, e.Methods = check, []string{"arb_test"} }, nodeOf(t, blocks))
		w.atHead(5)
		w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 6 })
		for _, c := range cases {
			if !checked {
				c.want = jsonrpc.Unverified
			}
			w.verified(c.method, c.params, c.want)
		}
	}
}

// verified expects that an answer is verified in a way.
func (w *world) verified(method, params string, want jsonrpc.Verification) {
	w.t.Helper()
	got, err := jsonrpctest.Verification(w.t.Context(), w.methods.Find(method), params)
	if got != want {
		w.t.Errorf("check: %s: %s%s is verified %s, want %s (%v)", w.network.entries.Checked, method, params, got, want, err)
	}
}

// What was followed stays linked to the head when it is no longer among the newest blocks, and
// after a restart. Of older blocks only a node says that they are on the chain.
func TestFollowedBlocksStayVerified(t *testing.T) {
	blocks, store := emptyBlocks(t, 400), newStore(t)
	n, spare := nodeOf(t, blocks[:50]), nodeOf(t, blocks)
	checked := func(e *Entries) { e.Checked = checkHeaders }
	expect := func(w *world) {
		t.Helper()
		w.verified("eth_getBlockByNumber", `["0x28",false]`, jsonrpc.ByHeader)
		w.verified("eth_getBlockReceipts", `["0x64"]`, jsonrpc.ByHeader)
		w.verified("eth_getBlockByNumber", `["0xa",false]`, jsonrpc.Unverified)
		w.verified("eth_getBlockReceipts", `["0xa"]`, jsonrpc.Unverified)
		w.verified("eth_getBlockByHash", fmt.Sprintf(`["%s",false]`, blocks[10]["hash"]), jsonrpc.ByHeader)
		w.verified("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x28"}]`, jsonrpc.ByHeader)
		w.verified("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0xa"}]`, jsonrpc.Unverified)
		w.verified("rollup_getEvents", `{"filter":{"from_block":{"block_number":1},"to_block":{"block_number":10},"chunk_size":5}}`, jsonrpc.Unverified)
	}
	w := serve(t, store, checked, n)
	w.atHead(49)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 32 })
	for _, count := range []int{250, 400} {
		n.Set(func(n *forwardtest.Node) { n.Answer = answersOf(blocks[:count]) })
		w.atHead(uint64(count - 1))
	}
	if first := w.network.follower.View().Blocks()[0].Number; first <= 100 {
		t.Fatalf("the view begins at %d, expected one above 100", first)
	}
	w.until("the final blocks are stored", func() bool {
		_, ok, err := w.network.archive.Get(t.Context(), "followed\x00"+string(binary.BigEndian.AppendUint64(nil, 398)))
		return ok && err == nil
	})
	expect(w)
	w.stop()

	usual := answersOf(blocks)
	n.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
			if len(params) > 0 && string(params[0]) == `"0x29"` {
				return emptyBlock(t, 41, types.EmptyRootHash), nil, true // agrees with its hash
			}
			return usual(method, params)
		}
	})
	w = serve(t, store, func(e *Entries) { checked(e); e.Upstream[1].Backup = true }, n, spare)
	w.atHead(399)
	w.allUsed()
	expect(w)
	w.verified("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x32"}]`, jsonrpc.ByHeader)
	w.expect("eth_getBlockByNumber", `["0x29",false]`, fmt.Sprintf(`…"hash":"%s"`, blocks[41]["hash"]))
	if s := w.network.pool.Status()[0]; s.Lies != 1 {
		t.Errorf("the node that invented a block: %+v", s)
	}
}

// An answer that was stored before a network was checked is not one that was checked.
func TestStoredBeforeItWasChecked(t *testing.T) {
	blocks, lies := emptyBlocks(t, 6), emptyBlocks(t, 6)
	lies[1]["miner"] = forwardtest.Emitter.Hex()
	store := newStore(t)
	w := serve(t, store, func(e *Entries) { e.Checked = checkNone }, nodeOf(t, lies))
	w.atHead(5)
	w.until("block 1 is final", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
	w.expect("eth_getBlockByNumber", `["0x1",true]`, `…"miner":"`+forwardtest.Emitter.Hex())
	w.stop()
	w = serve(t, store, func(e *Entries) { e.Checked = checkHeaders }, nodeOf(t, blocks))
	w.atHead(5)
	w.until("block 1 is final", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
	w.expect("eth_getBlockByNumber", `["0x1",true]`, `…"miner":"0x0000000000000000000000000000000000000000"`)
}

// A node can invent a block that was not followed. The answer is not stored, so it does not
// contradict later ones.
func TestInventedBlocksAreNotStored(t *testing.T) {
	blocks, store := emptyBlocks(t, 100), newStore(t)
	n := nodeOf(t, blocks)
	invent := func(number int64) {
		usual := answersOf(blocks)
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
				if len(params) > 0 && string(params[0]) == fmt.Sprintf(`"%#x"`, number) {
					return emptyBlock(t, number, types.EmptyRootHash), nil, true
				}
				return usual(method, params)
			}
		})
	}
	w := serve(t, store, func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(99)
	invent(10)
	invented := emptyBlock(t, 10, types.EmptyRootHash)
	events := `{"filter":{"from_block":{"block_number":1},"to_block":{"block_number":10},"chunk_size":5}}`
	w.expect("eth_getBlockByNumber", `["0xa",false]`, fmt.Sprintf(`…"hash":"%s"`, invented["hash"]))
	w.expect("eth_getLogs", `[{"fromBlock":"0xa","toBlock":"0xa"}]`, "[]")
	w.expect("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x14"}]`, "…no upstream node can answer now")
	w.call("rollup_getEvents", events)
	n.Set(func(n *forwardtest.Node) { n.Answer = answersOf(blocks) })
	w.expect("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x14"}]`, "[]")
	w.expect("eth_getBlockByNumber", `["0xa",false]`, fmt.Sprintf(`…"hash":"%s"`, blocks[10]["hash"]))
	w.expect("rollup_getEvents", events, "…[]")
}

// A head is shown as its hash covers it. Names of members differ in more than their case, so a node could
// send one that is checked and another one that clients see.
func TestHeadsAreMadeFromTheHeader(t *testing.T) {
	blocks := emptyBlocks(t, 7)
	blocks[6]["stateroot"], blocks[6]["stateRoot"], blocks[6]["other"] = blocks[6]["stateRoot"], types.EmptyRootHash, strings.Repeat("x", 1<<20)
	blocks[6]["transactions"] = make([]common.Hash, 1000)
	n := nodeOf(t, blocks[:6])
	w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(5)
	heads := w.subscribe(`["newHeads"]`)
	n.Set(func(n *forwardtest.Node) { n.Answer = answersOf(blocks) })
	w.until("the head is published", func() bool { return heads.events(t) == "6" })
	heads.mu.Lock()
	defer heads.mu.Unlock()
	if text := heads.messages[0]; !strings.Contains(text, fmt.Sprintf(`"stateRoot":"%s"`, blocks[6]["stateroot"])) || len(text) > 4096 {
		t.Errorf("the head: %.3000s", text)
	}
	if size := len(w.network.follower.View().Head().JSON); size > 4096 {
		t.Errorf("the head takes %d bytes", size)
	}
}
