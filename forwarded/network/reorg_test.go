package network

import (
	"testing"

	"ashlar/forwarded/forwardtest"
)

// A reorganization that drops a block from before a subscription, which no node has any more, ends
// no subscription, and the logs of the block follow as removed.
func TestReorganizationBelowSubscription(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 12, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(12)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 13 })
	logs, heads := w.subscribe(`["logs",{}]`), w.subscribe(`["newHeads"]`)
	w.until("the logs of the blocks before are known", func() bool { return n.Count("eth_getLogs") == 8 })
	n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork, n.Chain.Head = "b", 12, 14 })
	w.atHead(14)
	w.until("the heads are published", func() bool { return heads.events(t) == "12 13 14" })
	w.until("the logs are published", func() bool { return logs.events(t) == "-12/0 12/0 13/0 14/0" })
}

// A node that changed to a branch that is not followed yet does not have the new blocks of the branch before. They
// were not pruned: a client may take that error for final.
func TestBlocksOfAnotherBranch(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 200, Final: 100})
	w := serve(t, newStore(t), nil, n)
	w.atHead(200)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) >= 32 })
	n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork, n.Chain.Head = "b", 196, 198 })
	w.until("the node is seen at the lower head", func() bool { return w.network.pool.Status()[0].Head.Number == 198 })
	for _, block := range []string{`"0xc5"`, `"0xc6"`} {
		w.expect("eth_getBlockByNumber", `[`+block+`,false]`, "-32000 no upstream node can answer now: try again later")
		w.expect("eth_getBlockReceipts", `[`+block+`]`, "-32000 no upstream node can answer now: try again later")
	}
	w.expect("eth_getBlockByNumber", `["0xc3",false]`, `…"number":"0xc3"`)
	n.Set(func(n *forwardtest.Node) { n.Chain.Head = 201 })
	w.atHead(201)
	w.expect("eth_getBlockByNumber", `["0xc8",false]`, `…"number":"0xc8"`)
}
