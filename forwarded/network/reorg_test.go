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
