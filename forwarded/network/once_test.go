package network

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/forwarded/forwardtest"
)

// A passed method that sends something is sent to one node, once, however long that takes.
func TestPassedOnce(t *testing.T) {
	const method = "eth_sendRawTransactionSync"
	a, b := node(t, forwardtest.Chain{Head: 10}), node(t, forwardtest.Chain{Head: 10})
	w := serve(t, newStore(t), func(e *Entries) { e.Methods = []string{method} }, a, b)
	w.atHead(10)
	w.allUsed()
	atA, releaseA := hold(a, method)
	atB, releaseB := hold(b, method)
	done := make(chan string, 1)
	go func() { done <- w.call(method, `["0x01"]`) }()
	other := atB
	select {
	case <-atA:
	case <-atB:
		other = atA
	case answer := <-done:
		t.Fatalf("it was answered with %s and not sent to a node", answer)
	}
	select {
	case <-other:
		t.Error("it was sent to a second node")
	case <-time.After(1500 * time.Millisecond): // calls that may be repeated are, after a second
	}
	releaseA()
	releaseB()
	<-done
}

// A call that must not be repeated ends with an error that does not ask for another one if the node has not answered it.
func TestChangesThatAreNotAnswered(t *testing.T) {
	const method = "eth_sendRawTransactionSync"
	a, b := node(t, forwardtest.Chain{Head: 10}), node(t, forwardtest.Chain{Head: 10})
	w := serve(t, newStore(t), func(e *Entries) { e.Methods = []string{method} }, a, b)
	w.atHead(10)
	w.allUsed()
	sent := new(atomic.Int64)
	for _, n := range []*forwardtest.Node{a, b} {
		n.Set(func(n *forwardtest.Node) {
			n.Between = func(w http.ResponseWriter, r *http.Request) bool {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if !strings.Contains(string(body), method) {
					return false
				}
				sent.Add(1)
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		})
	}
	if got := w.call(method, `["0x01"]`); !strings.Contains(got, "-32000 the upstream node has not answered: it may or may not have done") || sent.Load() != 1 {
		t.Errorf("sent %d times, expected once: %s", sent.Load(), got)
	}
}
