package network

import (
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/forwarded/forwardtest"
)

// The block of an answer is known whatever white space a node writes: answers about final blocks are
// kept, and those about a block above the head are not shown.
func TestPlaceOfIndentedAnswers(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 100, Final: 90, LogsPer: 1})
	n.Set(func(n *forwardtest.Node) { n.Indented = true })
	store := newStore(t)
	named := func(number uint64) string { return fmt.Sprintf(`["%s"]`, n.Chain.Transaction(number)) }
	for range 2 {
		w := serve(t, store, nil, n)
		w.atHead(100)
		w.until("the final block is known", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
		w.expect("eth_getTransactionReceipt", named(5), `…"0x5"`)
		w.expect("eth_getTransactionByHash", named(7), `…"0x7"`)
		w.stop()
	}
	if receipts, transactions := n.Count("eth_getTransactionReceipt"), n.Count("eth_getTransactionByHash"); receipts != 1 || transactions != 1 {
		t.Errorf("asked for a receipt %d times and for a transaction %d times, expected once each: they are final", receipts, transactions)
	}
	w := serve(t, store, nil, n)
	w.atHead(100)
	n.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
			return map[string]any{"blockNumber": "0x65"}, nil, method == "eth_getTransactionReceipt"
		}
	})
	w.expect("eth_getTransactionReceipt", named(101), "null")
}
