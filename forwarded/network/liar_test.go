package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/core/types"
)

// A node that names a head which it does not have does not stop the head of the others.
func TestHeadThatIsNotThere(t *testing.T) {
	honest, liar := node(t, forwardtest.Chain{Head: 10}), node(t, forwardtest.Chain{Head: 10})
	liar.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		if method == "eth_getBlockByNumber" && strings.Contains(string(params[0]), "latest") {
			return map[string]any{"number": "0x100", "hash": fmt.Sprintf("%#064x", 1), "parentHash": fmt.Sprintf("%#064x", 2)}, nil, true
		}
		return nil, nil, method == "eth_getBlockByHash"
	}
	w := serve(t, newStore(t), nil, liar, honest)
	w.atHead(10)
	w.allUsed()
	honest.Set(func(n *forwardtest.Node) { n.Chain.Head = 11 })
	w.atHead(11)
}

// A block with uncles is refused with the reason.
func TestUncles(t *testing.T) {
	header := &types.Header{Number: big.NewInt(6), Difficulty: new(big.Int), TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash, BaseFee: big.NewInt(1)}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	blocks := emptyBlocks(t, 6)
	var block map[string]any
	if err := json.Unmarshal(text, &block); err != nil {
		t.Fatal(err)
	}
	block["transactions"], block["uncles"] = []any{}, []any{header.Hash()}
	n := nodeOf(t, append([]map[string]any{block}, blocks...))
	w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(5)
	w.expect("eth_getBlockByHash", fmt.Sprintf(`["%s",true]`, header.Hash()), "-32000 the block has uncles, so it cannot be checked by its header")
	if s := w.network.pool.Status()[0]; s.Lies != 0 || !s.Usable {
		t.Errorf("the node: %+v", s)
	}
}

// A node that names a block for a transaction which the block does not have is set aside, and what
// it says is not kept.
func TestPlaceOfATransaction(t *testing.T) {
	blocks := emptyBlocks(t, 6)
	liar, honest := nodeOf(t, blocks), nodeOf(t, blocks)
	usual := liar.Answer
	liar.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		if method == "eth_getTransactionByHash" {
			return map[string]any{"blockNumber": "0x1", "blockHash": blocks[1]["hash"]}, nil, true
		}
		return usual(method, params)
	}
	w := serve(t, newStore(t), func(e *Entries) { e.Checked, e.Upstream[1].Backup = checkHeaders, true }, liar, honest)
	w.atHead(5)
	w.allUsed()
	for range 2 {
		w.expect("eth_getTransactionReceipt", fmt.Sprintf(`["0x%064x"]`, 1), "null")
	}
	if s := w.network.pool.Status(); s[0].Usable || s[0].Lies != 1 || s[1].Lies != 0 {
		t.Errorf("the node that lied: %+v, the other one: %+v", s[0], s[1])
	}
}

// A node that names the right block for a transaction is not set aside because another one lies about the block.
func TestPlaceInABlockOfALiar(t *testing.T) {
	blocks := emptyBlocks(t, 6)
	failing, liar := nodeOf(t, blocks), nodeOf(t, blocks)
	w := serve(t, newStore(t), func(e *Entries) { e.Checked, e.Upstream[1].Backup = checkHeaders, true }, failing, liar)
	w.atHead(5)
	w.allUsed()
	usual := answersOf(blocks)
	failing.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
			if method == "eth_getTransactionByHash" {
				return map[string]any{"blockNumber": "0x5", "blockHash": blocks[5]["hash"]}, nil, true
			}
			return usual(method, params)
		}
		n.Between = func(w http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			whole := strings.Contains(string(body), "eth_getBlockByHash") && strings.Contains(string(body), "true")
			if whole {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return whole
		}
	})
	wrong := maps.Clone(blocks[5])
	wrong["miner"] = forwardtest.Emitter.Hex() // not the block of the hash
	liar.Set(func(n *forwardtest.Node) {
		n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
			if method == "eth_getBlockByHash" && string(params[1]) == "true" {
				return wrong, nil, true
			}
			return usual(method, params)
		}
	})
	w.call("eth_getTransactionReceipt", fmt.Sprintf(`["0x%064x"]`, 1))
	if s := w.network.pool.Status(); s[0].Lies != 0 || s[1].Lies != 1 {
		t.Errorf("lies of the node that named the block: %d (want none), of the other one: %d (want one)", s[0].Lies, s[1].Lies)
	}
}

// While all nodes are set aside, calls are refused at once, before the first head too, and the
// status says until when.
func TestAllNodesAreSetAside(t *testing.T) {
	blocks := emptyBlocks(t, 6)
	w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, nodeOf(t, blocks), nodeOf(t, blocks))
	w.atHead(5)
	w.allUsed()
	const refused = "…: all are set aside because of false answers"
	for _, s := range w.network.pool.Status() {
		w.network.pool.SetAside(s.Name, upstream.ErrLie)
	}
	w.expect("eth_getBalance", `["0x00000000000000000000000000000000000000e1","latest"]`, refused)
	w.expect("eth_blockNumber", "[]", `"0x5"`)
	status, err := w.network.Status(t.Context())
	if err != nil || status.Source.AsideUntil() == 0 || !strings.Contains(status.Source.Problem, "set aside because of false answers, the first until 20") {
		t.Errorf("the status: %+v, %v", status.Source, err)
	}

	wrong := slices.Clone(blocks) // the nodes above still answer
	wrong[5] = maps.Clone(blocks[5])
	wrong[5]["miner"] = forwardtest.Emitter.Hex() // not the block of the hash
	w = serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, nodeOf(t, wrong), nodeOf(t, wrong))
	w.expect("eth_blockNumber", "[]", refused)
}
