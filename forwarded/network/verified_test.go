package network

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/ethereum/go-ethereum/core/types"
)

// emptyBlocks returns a chain of blocks without transactions, each as nodes send it.
func emptyBlocks(t *testing.T, count int) (blocks []map[string]any) {
	t.Helper()
	header := &types.Header{Difficulty: new(big.Int), TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash, UncleHash: types.EmptyUncleHash, BaseFee: big.NewInt(1)}
	for i := range count {
		header.Number = big.NewInt(int64(i))
		text, err := json.Marshal(header)
		if err != nil {
			t.Fatal(err)
		}
		var block map[string]any
		if err := json.Unmarshal(text, &block); err != nil {
			t.Fatal(err)
		}
		block["transactions"], block["uncles"] = []any{}, []any{}
		blocks = append(blocks, block)
		header.ParentHash = header.Hash()
	}
	return blocks
}

// nodeOf starts a node of some blocks, the last but one of which is final.
func nodeOf(t *testing.T, blocks []map[string]any) *forwardtest.Node {
	n := node(t, forwardtest.Chain{})
	n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
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
	return n
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
		for _, c := range cases {
			if !checked {
				c.want = jsonrpc.Unverified
			}
			got, err := jsonrpctest.Verification(t.Context(), w.methods.Find(c.method), c.params)
			if got != c.want {
				t.Errorf("check: %s: %s%s is verified %s, want %s (%v)", check, c.method, c.params, got, c.want, err)
			}
		}
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
