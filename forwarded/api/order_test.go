package api

import (
	"context"
	"sync"
	"testing"

	"ashlar/jsonrpc"
)

// waited is a context that says when somebody begins to wait for its end.
type waited struct {
	context.Context
	begun func()
}

func (w waited) Done() <-chan struct{} {
	w.begun()
	return w.Context.Done()
}

// A client that is notified of a block finds it in its filter, whether the subscription or the filter
// joins while the block is published, or neither.
func TestFiltersComeFirst(t *testing.T) {
	for _, joins := range []string{"nobody", "the filter", "the subscriber"} {
		t.Run(joins, func(t *testing.T) {
			n, c := newClients(t, "")
			var filter, polled string
			install := func() {
				id, err := c.p.newBlockFilter(t.Context(), []byte(`[]`), nil)
				if err != nil {
					t.Fatal(err)
				}
				filter = string(id)
			}
			ctx, cancel := context.WithCancel(t.Context())
			opened := make(chan struct{})
			s := &connection{ctx: waited{ctx, sync.OnceFunc(func() { close(opened) })}, sent: func() { polled += c.poll(filter) }}
			subscribe := func() {
				if _, err := c.p.subscribeMethod(jsonrpc.WithNotifier(ctx, s), []byte(`["newHeads"]`), nil); err != nil {
					t.Fatal(err)
				}
				<-opened // later notifications are sent at once
			}
			before, during := []func(){install, subscribe}, []func(){}
			switch joins {
			case "the filter":
				before, during = before[1:], before[:1]
			case "the subscriber":
				before, during = before[:1], before[1:]
			}
			for _, act := range before {
				act()
			}
			n.fetched = func(byte) {
				for _, act := range during {
					act()
				}
			}
			n.present = chainOf("x")
			if len(during) > 0 {
				c.p.publish(t.Context()) // those who join know the block
				c.poll(filter)
				polled = ""
				n.present = chainOf("y")
			}
			c.p.publish(t.Context())
			cancel()
			s.running.Wait()
			if want := n.present.Head().Hash[0]; polled != string(rune(want)) {
				t.Errorf("when the subscriber was notified of %c, the filter had %q", want, polled)
			}
		})
	}
}
