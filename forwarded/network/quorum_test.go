package network

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"

	"ashlar/family"
	"ashlar/forwarded/forwardtest"
)

// With a quorum of two, one node among honest ones cannot make up a head, at whatever height,
// nor keep the others' head back.
func TestOneNodeCannotMakeUpAHead(t *testing.T) {
	honest := forwardtest.Chain{Head: 11, Final: 5}
	behind := honest
	behind.Head = 10
	a, b := node(t, honest), node(t, behind)
	liar := node(t, forwardtest.Chain{Head: 11, Branch: "made up", Fork: 8, Final: 11})
	w := serve(t, newStore(t), func(e *Entries) { e.Quorum = 2 }, a, liar, b)
	expect := func(number uint64) {
		t.Helper()
		w.atHead(number)
		w.expect("eth_getBlockByNumber", `["latest",false]`, fmt.Sprintf(`…"hash":"%#x"`, honest.Hash(number)))
	}
	w.allUsed()
	expect(10)
	liar.Set(func(n *forwardtest.Node) { n.Chain.Head = 500 })
	b.Set(func(n *forwardtest.Node) { n.Chain.Head = 11 })
	expect(11)
	for _, n := range []*forwardtest.Node{a, b} {
		n.Set(func(n *forwardtest.Node) { n.Chain.Head = 12 })
	}
	expect(12)
	w.until("the network is not behind one node", func() bool {
		status, err := w.network.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Source.Upstreams[1].Head == 500 && status.Source.Best == 12 && status.Source.Behind == 0
	})
	w.until("the final block is known", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
	w.expect("eth_getBlockByNumber", `["finalized",false]`, fmt.Sprintf(`…"hash":"%#x"`, honest.Hash(5)))
	for _, n := range []*forwardtest.Node{a, b} { // a real reorganization, on which both agree
		n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork = "b", 12 })
	}
	honest.Branch, honest.Fork = "b", 12
	w.until("the reorganization is followed", func() bool { return w.network.follower.View().Head().Hash == honest.Hash(12) })
	agreement := func() family.AgreementStatus {
		status, err := w.network.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *status.Source.Agreement
	}
	if got := agreement(); got.Quorum != 2 || got.Nodes < 2 || got.Since != 0 {
		t.Errorf("while nodes agree: %+v", got)
	}
	a.Stop()
	liar.Stop()
	w.until("one node is left", func() bool { return agreement().Nodes == 0 })
	if got := agreement(); got.Since == 0 {
		t.Errorf("while one node is left: %+v", got)
	}
}

// TestQuorumWithoutASlowNode: a node that does not say which blocks it has does not hold up the others, and is asked for nothing more
// meanwhile.
func TestQuorumWithoutASlowNode(t *testing.T) {
	chain := forwardtest.Chain{Head: 10}
	a, b, slow := node(t, chain), node(t, chain), node(t, chain)
	w := serve(t, newStore(t), func(e *Entries) { e.Quorum = 2 }, slow, a, b)
	w.allUsed()
	w.atHead(10)
	numbered, held := regexp.MustCompile(`"params":\["0x[0-9a-f]+",false\]`), new(atomic.Int32)
	slow.Set(func(n *forwardtest.Node) {
		n.Chain.Head = 100
		n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !numbered.Match(body) {
				return false
			}
			held.Add(1)
			<-r.Context().Done()
			return true
		}
	})
	for head := uint64(11); head < 17; head++ {
		for _, n := range []*forwardtest.Node{a, b} {
			n.Set(func(n *forwardtest.Node) { n.Chain.Head = head })
		}
		w.atHead(head)
	}
	if got := held.Load(); got > 2 {
		t.Errorf("the node that does not answer was asked %d times, expected once", got)
	}
}
