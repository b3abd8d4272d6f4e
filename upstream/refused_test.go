package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// refuse lets a node refuse the requests that contain a text, and returns how many these were.
func refuse(f *fake, text string, status int, body string) *atomic.Int64 {
	count := new(atomic.Int64)
	f.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, request []byte) bool {
			if !bytes.Contains(request, []byte(text)) {
				return false
			}
			count.Add(1)
			http.Error(w, body, status)
			return true
		}
	})
	return count
}

const (
	inText = "<html>Forbidden</html>"
	inJSON = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not for this project"}}`
)

// A node that refuses a method again and again is asked for it after the others, backups too, for a
// while. It is asked for other methods, and for this one if no other node answers.
func TestRefusedMethodIsAskedElsewhere(t *testing.T) {
	for _, body := range []string{inText, inJSON} {
		strict, backup := newFake(t, 7, 10), newFake(t, 7, 10)
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: append(nodesOf(strict), Node{URL: backup.URL, Backup: true})})
		usable(t, p, 2)
		refused := refuse(strict, `"debug_m"`, http.StatusForbidden, body)
		began := time.Now()
		for i := range 50 { // without rivals, which may be any node
			mustAsk(t, p, Call{Method: "debug_m", Params: fmt.Appendf(nil, "[%d]", i), Once: true})
		}
		if most := breakAfter + 1 + int64(time.Since(began)/time.Second); refused.Load() > most {
			t.Errorf("the node that refuses the method was asked %d times, expected up to %d", refused.Load(), most)
		}
		mustAsk(t, p, Call{Method: "other"})
		if strict.asked("other") != 1 {
			t.Error("the node was not asked for another method")
		}
		strict.set(func(f *fake) { f.raw = nil })
		refuse(backup, `"debug_m"`, http.StatusForbidden, body)
		mustAsk(t, p, Call{Method: "debug_m", Once: true})
		if strict.asked("debug_m") != 1 {
			t.Error("the node was not asked although no other one answers")
		}
		backup.set(func(f *fake) { f.raw = nil })
		mustAsk(t, p, Call{Method: "debug_m", Once: true})
		if strict.asked("debug_m") != 2 {
			t.Error("the node is not the first again, although it has answered")
		}
	}
}

// A node that refused a method is asked for it again after a while.
func TestRefusedMethodIsTriedAgain(t *testing.T) {
	strict, backup := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: append(nodesOf(strict), Node{URL: backup.URL, Backup: true})})
	usable(t, p, 2)
	refused := refuse(strict, `"m"`, http.StatusNotFound, inText)
	for i := range breakAfter {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i), Once: true})
	}
	until(t, "it is asked again", func() bool {
		mustAsk(t, p, Call{Method: "m", Once: true})
		return refused.Load() > breakAfter
	})
}

// A call that changes something is sent to another node if the first has refused it: it has not taken it.
func TestRefusedChangesAreSentElsewhere(t *testing.T) {
	for _, c := range []struct {
		status int
		taken  bool // perhaps
	}{
		{http.StatusUnauthorized, false}, {http.StatusForbidden, false}, {http.StatusNotFound, false},
		{http.StatusRequestTimeout, true}, {http.StatusBadGateway, true}, {http.StatusGatewayTimeout, true},
	} {
		strict, backup := newFake(t, 7, 10), newFake(t, 7, 10)
		p := open(t, Config{Poll: time.Hour, Nodes: append(nodesOf(strict), Node{URL: backup.URL, Backup: true})})
		usable(t, p, 2)
		refuse(strict, `"send"`, c.status, inText)
		if _, err := p.Ask(t.Context(), Call{Method: "send", Once: true}); (err != nil) != c.taken || backup.asked("send") > 0 == c.taken {
			t.Errorf("status %d: %v; the other node was asked %d times", c.status, err, backup.asked("send"))
		}
	}
}

// A poll has nothing of a client in it: a node that refuses one is not used until it answers one.
func TestRefusedPollEndsTheUse(t *testing.T) {
	for _, body := range []string{inText, inJSON} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
			if body == inJSON && status == http.StatusNotFound {
				continue // that is an answer
			}
			f := newFake(t, 7, 10)
			p := open(t, Config{Poll: time.Hour, Nodes: nodesOf(f)})
			usable(t, p, 1)
			refuse(f, "eth_", status, body)
			if err := p.poll(t.Context(), p.nodes[0], 1); err == nil {
				t.Fatal("the poll is not refused")
			}
			if s := p.Status()[0]; s.Usable {
				t.Errorf("status %d: the node is used after it has refused a poll", status)
			}
			f.set(func(f *fake) { f.raw = nil })
			if err := p.poll(t.Context(), p.nodes[0], 0); err != nil {
				t.Fatal(err)
			}
			if s := p.Status()[0]; !s.Usable {
				t.Errorf("status %d: the node is not used although it answers polls: %s", status, s.Why)
			}
		}
	}
}

// The client is told that the nodes refuse its call only if all that were asked do: another node that
// does not answer now may answer later. What a node says about the operator's key is not about the call.
func TestRefusedByAll(t *testing.T) {
	for _, c := range []struct {
		status  int
		body    string
		refused bool
	}{
		{http.StatusBadRequest, inText, true},
		{http.StatusBadGateway, inText, false},
		{http.StatusUnauthorized, inText, false},
		{http.StatusForbidden, inJSON, false},
	} {
		strict, other := newFake(t, 7, 10), newFake(t, 7, 10)
		for _, nodes := range [][]Node{nodesOf(strict, other), nodesOf(other, strict)} {
			nodes[1].Backup = true // it is asked second
			strict.set(func(f *fake) { f.raw = nil })
			other.set(func(f *fake) { f.raw = nil })
			p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodes})
			usable(t, p, 2)
			refuse(strict, `"m"`, http.StatusForbidden, inText)
			refuse(other, `"m"`, c.status, c.body)
			_, asked := p.Ask(t.Context(), Call{Method: "m"})
			_, sent := p.Broadcast(t.Context(), Call{Method: "m", Once: true}, 2)
			for _, err := range []error{asked, sent} {
				uncertain := c.status == http.StatusBadGateway && err == sent // that node may have done it
				if errors.Is(err, ErrCallRefused) != c.refused || errors.Is(err, ErrUnavailable) == uncertain || errors.Is(err, ErrUncertain) != uncertain {
					t.Errorf("the other node answers with status %d, %s: %v", c.status, c.body, err)
				}
			}
		}
	}
}

// A node, or a proxy before it, that refuses a batch gets no other one until it is identified again.
// That says nothing about the methods of the calls.
func TestRefusedBatchesAreNotRepeated(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{http.StatusBadRequest, inText}, {http.StatusForbidden, inText}, {http.StatusUnsupportedMediaType, inText}, {http.StatusForbidden, inJSON},
		{http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"batches are not supported"}}`},
	} {
		f := newFake(t, 7, 10)
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
		usable(t, p, 1)
		refused := refuse(f, "[{", c.status, c.body)
		for i := range 3 {
			calls := []Call{{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)}, {Method: "m", Params: fmt.Appendf(nil, "[%d]", i+10)}}
			for _, a := range p.AskAll(t.Context(), calls) {
				if a.Err != nil || string(a.Result) != `"m"` {
					t.Errorf("status %d: the answer is %s, %v", c.status, a.Result, a.Err)
				}
			}
		}
		if refused.Load() != 1 {
			t.Errorf("status %d, %s: %d batches were sent, expected 1", c.status, c.body, refused.Load())
		}
		f.set(func(f *fake) { f.raw = nil })
		if err := p.poll(t.Context(), p.nodes[0], 0); err != nil {
			t.Fatal(err)
		}
		p.AskAll(t.Context(), slices.Repeat([]Call{{Method: "m"}}, 2))
		if f.batch != 1 {
			t.Errorf("status %d: %d batches after it was identified again, expected 1", c.status, f.batch)
		}
	}
}

// A batch that is refused because there are too many requests makes the node rest, and may be sent later.
func TestThrottledBatches(t *testing.T) {
	f := newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	began := time.Now()
	refuse(f, "[{", http.StatusServiceUnavailable, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"rate limit exceeded"}}`)
	p.AskAll(t.Context(), slices.Repeat([]Call{{Method: "m", Params: json.RawMessage("[]")}}, 2))
	n := p.nodes[0]
	n.mu.Lock()
	ends, noBatch := n.resting, n.noBatch // the rest may be over already
	n.mu.Unlock()
	if o := n.obstacle(new(Call), 7, ends.Add(-1)); ends.Sub(began) < firstBreak || o.kind != resting || noBatch {
		t.Errorf("it takes calls: %t, batches: %t", o.kind == none, !noBatch)
	}
}
