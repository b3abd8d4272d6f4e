package network

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/forwarded/forwardtest"
)

// hold keeps back the node's next answer to a method, which it makes at once, until release is
// called. held is closed when there is one.
func hold(n *forwardtest.Node, method string) (held chan struct{}, release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	var taken atomic.Bool
	n.Set(func(n *forwardtest.Node) {
		n.Between = func(w http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !strings.Contains(string(body), method) || !taken.CompareAndSwap(false, true) {
				return false
			}
			answer := httptest.NewRecorder()
			n.ServeHTTP(answer, r)
			close(held)
			<-released
			_, _ = w.Write(answer.Body.Bytes())
			return true
		}
	})
	return held, func() { close(released) }
}

// A call for logs that was made before a reorganization does not answer one that is made after
// it, and its answer is not kept for the new head.
func TestLogsUnderWayInReorganization(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 12, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(12)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 13 })
	const wanted = `[{"fromBlock":"0xa","toBlock":"0xb"}]`
	held, release := hold(n, "eth_getLogs")
	first, second := make(chan string, 1), make(chan string, 1)
	go func() { first <- w.call("eth_getLogs", wanted) }()
	<-held
	n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork, n.Chain.Head = "b", 11, 13 })
	w.atHead(13)
	go func() { second <- w.call("eth_getLogs", wanted) }()
	select {
	case got := <-second:
		second <- got
	case <-time.After(500 * time.Millisecond): // it has joined the first call
	}
	release()
	<-first
	for _, got := range []string{<-second, w.call("eth_getLogs", wanted)} {
		if !strings.Contains(got, n.Chain.Hash(11).Hex()) {
			t.Errorf("the logs of block 11 of the new branch: %s", got)
		}
	}
}
