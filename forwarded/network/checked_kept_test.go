package network

import (
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/forwarded/archive"
	"ashlar/forwarded/forwardtest"

	"github.com/ethereum/go-ethereum/common"
)

// An answer that an earlier version kept, and that the checks refuse now, is asked for again and kept anew.
func TestKeptBeforeAStricterCheck(t *testing.T) {
	first := emptyBlock(t, 0, common.Hash{})
	block, receipts := blockWithLogs(t, 1, common.HexToHash(first["hash"].(string)), 1)
	hash := common.HexToHash(block["hash"].(string))
	second := emptyBlock(t, 2, hash)
	third := emptyBlock(t, 3, common.HexToHash(second["hash"].(string)))
	n := node(t, forwardtest.Chain{})
	answer := answersOf([]map[string]any{first, block, second, third})
	n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		if method == "eth_getBlockReceipts" {
			return receipts, nil, true
		}
		return answer(method, params)
	}
	store := newStore(t)
	a, err := archive.Open(t.Context(), store, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	// The root covers this state root of one byte as it covers the status 1.
	lie := map[string]any{"root": "0x01", "cumulativeGasUsed": receipts[0]["cumulativeGasUsed"], "logs": receipts[0]["logs"]}
	kept, err := json.Marshal([]any{lie})
	if err == nil {
		err = a.Put(t.Context(), fmt.Sprintf("eth_getBlockReceipts\x00[\"%#x\"]\x00checked%s", hash, hash[:]), kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, store, func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(3)
	w.until("block 2 is final", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
	for range 2 {
		w.expect("eth_getBlockReceipts", `["0x1"]`, `…"status":"0x1"`)
	}
	if asked := n.Count("eth_getBlockReceipts"); asked != 1 {
		t.Errorf("the node was asked %d times, expected once", asked)
	}
}
