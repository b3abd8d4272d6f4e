package proven

import (
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/internal/await"
	"ashlar/upstream"
)

// hold makes a node hold back its answers to eth_getBlockByNumber until the function that it returns is called.
func (n *testNodes) hold(one *testNode) (release func()) {
	held := make(chan struct{})
	one.held = held
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		one.held = nil
		close(held)
	}
}

// TestHeadWithoutASlowNode: a node that does not answer does not hold up a quorum of the others.
func TestHeadWithoutASlowNode(t *testing.T) {
	c := newTestChain(t, 12)
	slow, a, b := c.node("slow"), c.node("a"), c.node("b")
	nodes := newTestNodes(slow, a, b)
	f := follow(t, nodes, 2)
	slow.blocks, a.blocks, b.blocks = c.blocks[:9], c.blocks[:9], c.blocks[:9]
	f.stepTo(t, c.blocks[8])
	defer nodes.hold(slow)()
	slow.blocks, a.blocks, b.blocks = c.blocks[:13], c.blocks[:11], c.blocks[:10] // slow and a are asked for block 9
	f.stepTo(t, c.blocks[9])
	a.blocks, b.blocks = c.blocks[:12], c.blocks[:12]
	f.stepTo(t, c.blocks[11])
	if nodes.aside["slow"] != nil {
		t.Errorf("the slow node is set aside: %v", nodes.aside["slow"])
	}
}

// TestLowerHeadWithoutASlowNode: while a node without which there is no quorum does not answer, the others agree on a lower block.
// Its answer counts when it has come, even if the heads have moved on.
func TestLowerHeadWithoutASlowNode(t *testing.T) {
	c := newTestChain(t, 20)
	slow, a, b := c.node("slow"), c.node("a"), c.node("b")
	nodes := newTestNodes(slow, a, b)
	f := follow(t, nodes, 2)
	slow.blocks, a.blocks, b.blocks = c.blocks[:6], c.blocks[:6], c.blocks[:6]
	f.stepTo(t, c.blocks[5])
	release := nodes.hold(slow)
	slow.blocks, a.blocks, b.blocks = c.blocks[:12], c.blocks[:9], c.blocks[:7]
	f.stepTo(t, c.blocks[6]) // slow and a would have block 8
	slow.blocks, a.blocks = c.blocks[:15], c.blocks[:13]
	if err := f.step(t.Context()); !errors.Is(err, errUndecided) {
		t.Errorf("while an answer is missing: %v, expected %v", err, errUndecided)
	}
	release()
	await.Until(t, "the answer of the slow node", func() bool {
		_ = f.step(t.Context())
		return f.tip.Forkchoice().Head.Ref() == refOf(c.blocks[12])
	})
}

// TestSlowNodeIsIdentified: a node that does not say which chain it is on does not hold up the others, and does not vote.
func TestSlowNodeIsIdentified(t *testing.T) {
	for _, quorum := range []int{1, 2} {
		c := newTestChain(t, 12)
		slow, a, b := c.node("slow"), c.node("a"), c.node("b")
		nodes := newTestNodes(slow, a, b)
		settled := refOf(c.blocks[3])
		f := follow(t, nodes, quorum, func(h *HeadConfig) { h.Settled = func() chain.Ref { return settled } })
		slow.blocks, a.blocks, b.blocks = c.fork(2, 10), c.blocks[:9], c.blocks[:9]
		release := nodes.hold(slow)
		f.stepTo(t, c.blocks[8])
		a.blocks, b.blocks = c.blocks[:10], c.blocks[:10]
		settled = refOf(c.blocks[4])
		f.stepTo(t, c.blocks[9])
		release()
		await.Until(t, "the slow node to be set aside", func() bool {
			f.stepTo(t, c.blocks[9])
			for _, s := range nodes.Status() {
				if s.Name == "slow" && !s.Usable {
					return true
				}
			}
			return false
		})
	}
}

var _ Watcher = (*upstream.Pool)(nil)
