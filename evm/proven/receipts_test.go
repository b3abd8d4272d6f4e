package proven

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// The root of receipts covers every status but 0 as success, and one byte of a state root as a status.
// A node that sends another form of an outcome than the root's has lied.
func TestOutcomeHasOneForm(t *testing.T) {
	for name, change := range map[string]func(receipt map[string]any){
		"status 2":          func(r map[string]any) { r["status"] = "0x2" },
		"root of one byte":  func(r map[string]any) { r["root"] = "0x01" },
		"root for a status": func(r map[string]any) { r["root"] = "0x01"; delete(r, "status") },
	} {
		c := newTestChain(t, 3)
		liar, honest := c.node("liar"), c.node("honest")
		nodes := newTestNodes(liar, honest)
		f := follow(t, nodes, 1)
		f.stepTo(t, c.blocks[3])
		liar.objects, honest.objects = true, true
		liar.alter = func(method string, result any) any {
			if method != "eth_getBlockReceipts" {
				return result
			}
			var receipts []map[string]any
			text, err := json.Marshal(result)
			if err == nil {
				err = json.Unmarshal(text, &receipts)
			}
			if err != nil {
				t.Error(err)
			}
			change(receipts[0])
			return receipts
		}
		receipts, err := f.remote.receiptsOf(t.Context(), c.blocks[2])
		if err != nil || receipts[0].Status != types.ReceiptStatusSuccessful || len(receipts[0].PostState) > 0 {
			t.Errorf("%s: the receipts are %v, %v", name, receipts, err)
		}
		if nodes.aside["liar"] == nil || nodes.aside["honest"] != nil {
			t.Errorf("%s: set aside: %v", name, nodes.aside)
		}
	}
}

// Geth answers debug_getRawReceipts of a hash that it does not know with an empty list, as while it is on another branch. It is
// not set aside, and the answer comes from another node.
func TestReceiptsOfAnUnknownBlock(t *testing.T) {
	c := newTestChain(t, 3)
	late, other := c.node("late"), c.node("other")
	nodes := newTestNodes(late, other)
	f := follow(t, nodes, 1)
	late.alter = func(method string, result any) any {
		if method == "debug_getRawReceipts" {
			return []hexutil.Bytes{}
		}
		return result
	}
	f.stepTo(t, c.blocks[3]) // with its receipts
	if len(nodes.aside) > 0 {
		t.Errorf("set aside: %v", nodes.aside)
	}
}

// A node without debug methods is asked for what one with them does not have. The pool remembers who lacks a method, so that the
// answer about the raw form is that of the node that has it.
func TestReceiptsBesideANodeWithoutDebugMethods(t *testing.T) {
	c := newTestChain(t, 3)
	late, other := c.node("late"), c.node("other")
	other.objects = true
	late.alter = func(method string, result any) any {
		if method == "debug_getRawReceipts" {
			return []hexutil.Bytes{}
		}
		return result
	}
	follow(t, newTestNodes(other, late), 1).stepTo(t, c.blocks[3])
}

// reth does not keep the state roots that receipts had before Byzantium, and sends a status in their place. It is not set aside for
// that, and the answer comes from another node. Without one, the receipts are not found.
func TestReceiptsWithoutStateRoots(t *testing.T) {
	for _, raw := range []bool{true, false} {
		c := newTestChain(t, 3)
		rethLike, other := c.node("reth"), c.node("other")
		nodes := newTestNodes(rethLike)
		f := follow(t, nodes, 1)
		f.stepTo(t, c.blocks[3])
		rethLike.objects, other.objects = !raw, !raw
		rules := *f.remote.chain
		rules.ByzantiumBlock = big.NewInt(100)
		f.remote.chain = &rules

		header, old := c.blocks[2].Header(), c.receipts[c.blocks[2].Hash()][0]
		rooted := &types.Receipt{Type: old.Type, PostState: bytes.Repeat([]byte{7}, 32), CumulativeGasUsed: old.CumulativeGasUsed, Bloom: old.Bloom, Logs: old.Logs}
		header.ReceiptHash = types.DeriveSha(types.Receipts{rooted}, trie.NewStackTrie(nil))
		block := types.NewBlockWithHeader(header).WithBody(*c.blocks[2].Body())
		rethLike.blocks = append(rethLike.blocks, block)
		c.receipts[block.Hash()] = types.Receipts{old}
		if _, err := f.remote.receiptsOf(t.Context(), block); !errors.Is(err, ErrNotFound) {
			t.Errorf("raw %t: receipts without state roots: %v, want that they are not found", raw, err)
		}
		other.blocks = rethLike.blocks
		other.alter = func(method string, result any) any {
			encoded, err := rooted.MarshalBinary()
			switch {
			case err != nil:
				t.Error(err)
			case method == "debug_getRawReceipts":
				return []hexutil.Bytes{encoded}
			case method == "eth_getBlockReceipts":
				return types.Receipts{rooted}
			}
			return result
		}
		nodes.nodes = append(nodes.nodes, other)
		receipts, err := f.remote.receiptsOf(t.Context(), block)
		if err != nil || len(receipts[0].PostState) != 32 {
			t.Errorf("raw %t: %v, %v", raw, receipts, err)
		}
		if len(nodes.aside) > 0 {
			t.Errorf("raw %t: set aside: %v", raw, nodes.aside)
		}
	}
}
