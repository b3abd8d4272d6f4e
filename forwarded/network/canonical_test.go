package network

import (
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// A block that left the chain is found by its hash, unless the question demands that it is on the chain.
// Of a block that was not followed only a node says whether it is.
func TestRequireCanonical(t *testing.T) {
	blocks := emptyBlocks(t, 400)
	dropped := make(map[string]map[string]any) // by hash
	beside := func(number int) (hash string) {
		block := emptyBlock(t, int64(number), common.BytesToHash([]byte("another")))
		hash = block["hash"].(string)
		dropped[hash] = block
		return hash
	}
	oldBeside, newBeside := beside(10), beside(395)
	n := node(t, forwardtest.Chain{})
	answer := answersOf(blocks)
	n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		var hash string
		if len(params) > 0 && json.Unmarshal(params[0], &hash) == nil && dropped[hash] != nil && method == "eth_getBlockByHash" {
			return dropped[hash], nil, true
		}
		return answer(method, params)
	}
	w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(399)
	w.until("block 395 was followed", func() bool { return w.network.follower.View().Blocks()[0].Number < 395 })
	of := func(hash any, canonical bool) string {
		return fmt.Sprintf(`[{"blockHash":"%s","requireCanonical":%t}]`, hash, canonical)
	}
	const refused = "-32000 hash is not currently canonical"
	for _, hash := range []any{oldBeside, newBeside} {
		w.expect("eth_getBlockReceipts", of(hash, false), "[]")
		w.expect("eth_getBlockReceipts", of(hash, true), refused)
	}
	for _, number := range []int{10, 395} {
		w.expect("eth_getBlockReceipts", of(blocks[number]["hash"], true), "[]")
	}
	w.verified("eth_getBlockReceipts", of(blocks[10]["hash"], true), jsonrpc.Unverified)
	w.verified("eth_getBlockReceipts", of(blocks[395]["hash"], true), jsonrpc.ByHeader)
	w.verified("eth_getBlockReceipts", of(blocks[10]["hash"], false), jsonrpc.ByHeader)
	w.expect("eth_getBlockReceipts", of(common.Hash{1}, true), "null")
}
