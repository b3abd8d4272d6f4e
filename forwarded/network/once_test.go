package network

import (
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
