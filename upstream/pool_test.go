package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustAsk(t *testing.T, p *Pool, c Call) string {
	t.Helper()
	a, err := p.Ask(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Result)
}

// A node that is down and one of another chain do not matter, whatever their place in the
// list, if the chain is configured.
func TestOtherNodesDoNotMatter(t *testing.T) {
	down, other, good := newFake(t, 7, 1), newFake(t, 8, 100), newFake(t, 7, 10)
	down.Close()
	p := open(t, Config{Nodes: nodesOf(down, other, good), ChainID: 7})
	if got := mustAsk(t, p, Call{Method: "eth_call"}); got != `"eth_call"` {
		t.Errorf("the answer is %s", got)
	}
	if other.asked("eth_call") > 0 {
		t.Error("a node of another chain was asked")
	}
	usable(t, p, 1)
	why := []string{"refused", "it is on chain 8, expected 7", ""}
	until(t, "each node has its reason", func() bool {
		for i, s := range p.Status() {
			if !strings.Contains(s.Why, why[i]) || why[i] == "" && s.Why != "" {
				return false
			}
		}
		return true
	})
}

// Without a configured chain it is that of the first node, or, if that is down, of the one
// that answers.
func TestChainOfTheFirstNode(t *testing.T) {
	first, second := newFake(t, 7, 1), newFake(t, 8, 1)
	p := open(t, Config{Nodes: nodesOf(first, second)})
	if mustAsk(t, p, Call{Method: "x"}); p.ChainID() != 7 {
		t.Errorf("the chain is %d, expected 7", p.ChainID())
	}
	first.Close()
	p = open(t, Config{Nodes: nodesOf(first, second)})
	if mustAsk(t, p, Call{Method: "x"}); p.ChainID() != 8 {
		t.Errorf("the chain is %d, expected 8", p.ChainID())
	}
}

// A call that comes before a node answers waits for it, within its context.
func TestWaitsForTheFirstNode(t *testing.T) {
	f := newFake(t, 7, 1)
	var late sync.Mutex
	late.Lock()
	f.raw = func(http.ResponseWriter, *http.Request, []byte) bool {
		late.Lock()
		defer late.Unlock()
		return false
	}
	p := open(t, Config{Nodes: nodesOf(f)})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Ask(ctx, Call{Method: "eth_call"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked too early: %v", err)
	}
	late.Unlock()
	mustAsk(t, p, Call{Method: "eth_call"})
}

// What a failed node says decides whether another is asked.
func TestFailover(t *testing.T) {
	for _, c := range []struct {
		method string
		fault  NodeError
		asked  bool // the other node
	}{
		{"eth_call", NodeError{Code: 3, Message: "execution reverted: no", Data: json.RawMessage(`"0x12"`)}, false},
		{"eth_call", NodeError{Code: -32000, Message: "insufficient funds for gas * price + value"}, false},
		{"eth_call", NodeError{Code: -32602, Message: "invalid argument 0"}, false},
		{"eth_call", NodeError{Code: -32000, Message: "execution aborted (timeout = 5s)"}, false},
		{"eth_call", NodeError{Code: -32000, Message: "missing trie node 12 (path )"}, true},
		{"eth_call", NodeError{Code: -32000, Message: "header not found"}, true},
		{"eth_call", NodeError{Code: -32603, Message: "oops"}, true},
		{"eth_call", NodeError{Code: -32601, Message: "the method eth_call does not exist/is not available"}, true},
		{"eth_call", NodeError{Code: 429, Message: "daily request count exceeded, request rate limited"}, true},
		{"eth_getLogs", NodeError{Code: -32005, Message: "query returned more than 10000 results"}, false},
		{"eth_getLogs", NodeError{Code: -32600, Message: "You can make eth_getLogs requests with up to a 500 block range."}, false},
	} {
		bad, good := newFake(t, 7, 10), newFake(t, 7, 10)
		bad.set(func(f *fake) {
			f.answer = func(string, json.RawMessage) (any, *NodeError) { return nil, &c.fault }
		})
		backup := nodesOf(good)
		backup[0].Backup = true
		p := open(t, Config{Nodes: append(nodesOf(bad), backup...)})
		usable(t, p, 2)
		_, err := p.Ask(t.Context(), Call{Method: c.method})
		var node *NodeError
		if c.asked != (err == nil) || !c.asked && (!errors.As(err, &node) || node.Message != c.fault.Message || string(node.Data) != string(c.fault.Data)) {
			t.Errorf("%s: %v, expected another node to be asked: %t", c.fault.Message, err, c.asked)
		}
		if got := good.asked(c.method) > 0; got != c.asked {
			t.Errorf("%s: another node was asked: %t, expected %t", c.fault.Message, got, c.asked)
		}
	}
}

// A method that a node does not have is asked for once.
func TestUnsupportedMethod(t *testing.T) {
	f := newFake(t, 7, 10)
	f.answer = func(string, json.RawMessage) (any, *NodeError) { return nil, &NodeError{Code: -32601, Message: "no"} }
	p := open(t, Config{Nodes: nodesOf(f)})
	var node *NodeError
	if _, err := p.Ask(t.Context(), Call{Method: "x"}); !errors.As(err, &node) {
		t.Errorf("the first call: %v", err)
	}
	if _, err := p.Ask(t.Context(), Call{Method: "x"}); !errors.Is(err, ErrUnsupported) || f.asked("x") != 1 {
		t.Errorf("the second call: %v, asked %d times", err, f.asked("x"))
	}
	if p.Status()[0].Methods["x"] {
		t.Error("the method is said to be supported")
	}
}

// A node that is late gets a rival, whose answer counts.
func TestHedge(t *testing.T) {
	slow, fast := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Nodes: append(nodesOf(slow), Node{URL: fast.URL, Backup: true})})
	usable(t, p, 2)
	for i := range 2 * enough {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	before := fast.asked("m")
	stall := make(chan struct{})
	defer close(stall)
	slow.set(func(f *fake) {
		f.answer = func(string, json.RawMessage) (any, *NodeError) { <-stall; return "late", nil }
	})
	if got := mustAsk(t, p, Call{Method: "m"}); got != `"m"` || fast.asked("m") != before+1 {
		t.Errorf("the answer is %s, the rival was asked %d times", got, fast.asked("m")-before)
	}
}

// Identical calls are sent once while one is under way; a caller that leaves does not end
// the call for the others.
func TestIdenticalCallsAreSentOnce(t *testing.T) {
	f := newFake(t, 7, 10)
	hold := make(chan struct{})
	f.answer = func(string, json.RawMessage) (any, *NodeError) { <-hold; return 1, nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	usable(t, p, 1)
	leaving, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := p.Ask(leaving, Call{Method: "m"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	until(t, "the call is sent", func() bool { return f.asked("m") == 1 })
	for range 20 {
		asking.Go(func() {
			if a, err := p.Ask(t.Context(), Call{Method: "m"}); err != nil || string(a.Result) != "1" {
				t.Error(a, err)
			}
		})
	}
	until(t, "all wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.flights {
			return f.waiting == 21
		}
		return false
	})
	leave()
	until(t, "one has left", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.flights {
			return f.waiting == 20
		}
		return false
	})
	close(hold)
	asking.Wait()
	if f.asked("m") != 1 {
		t.Errorf("asked %d times", f.asked("m"))
	}
}

// A node whose head is below the block of a call is not asked, nor is one that lacked history
// of that depth.
func TestHeadAndHistory(t *testing.T) {
	behind, ahead := newFake(t, 7, 10), newFake(t, 7, 100)
	p := open(t, Config{Nodes: nodesOf(behind, ahead)})
	usable(t, p, 2)
	for i := range 10 {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i), Needs: 50})
	}
	if behind.asked("m") > 0 {
		t.Error("a node that is behind was asked")
	}
	behind.set(func(f *fake) { f.head = 100 })
	until(t, "the node has caught up", func() bool { return p.Status()[0].Head.Number == 100 })
	ahead.set(func(f *fake) {
		f.answer = func(string, json.RawMessage) (any, *NodeError) {
			return nil, &NodeError{-32000, "missing trie node", nil}
		}
	})
	for i := range 10 {
		mustAsk(t, p, Call{Method: "old", Params: fmt.Appendf(nil, "[%d]", i), History: States, About: 20})
	}
	if asked := ahead.asked("old"); asked > 1 {
		t.Errorf("a node without the state was asked %d times", asked)
	}
	if d := p.Status()[1].Depth[States]; ahead.asked("old") == 1 && d != 80 {
		t.Errorf("the depth of its states is %d, expected 80", d)
	}
}

// A lie sets the node aside; an answer that is unfit does not.
func TestLie(t *testing.T) {
	liar, good := newFake(t, 7, 10), newFake(t, 7, 10)
	liar.set(func(f *fake) { f.answer = func(string, json.RawMessage) (any, *NodeError) { return "lie", nil } })
	p := open(t, Config{Nodes: append(nodesOf(liar), Node{URL: good.URL, Backup: true})})
	usable(t, p, 2)
	check := func(lie error) func(json.RawMessage) error {
		return func(result json.RawMessage) error {
			if string(result) == `"lie"` {
				return lie
			}
			return nil
		}
	}
	if got := mustAsk(t, p, Call{Method: "m", Check: check(Unfit("null"))}); got != `"m"` {
		t.Errorf("the answer is %s", got)
	}
	if s := p.Status()[0]; !s.Usable || s.Failures != 1 {
		t.Errorf("after an unfit answer: %+v", s)
	}
	if got := mustAsk(t, p, Call{Method: "m", Check: check(fmt.Errorf("%w: wrong hash", ErrLie))}); got != `"m"` {
		t.Errorf("the answer is %s", got)
	}
	if s := p.Status()[0]; s.Usable || s.Lies != 1 || !strings.Contains(s.Why, "wrong hash") {
		t.Errorf("after a lie: %+v", s)
	}
}

// An answer with which the check panics is a lie.
func TestCheckPanics(t *testing.T) {
	p := open(t, Config{Nodes: nodesOf(newFake(t, 7, 10))})
	usable(t, p, 1)
	_, err := p.Ask(t.Context(), Call{Method: "m", Check: func(json.RawMessage) error { panic("no such index") }})
	if !errors.Is(err, ErrLie) || p.Status()[0].Lies != 1 {
		t.Errorf("%v, %+v", err, p.Status()[0])
	}
}

// A daily budget is spent by calls; without one the other node is asked.
func TestBudget(t *testing.T) {
	small, large := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: []Node{{URL: small.URL, Daily: 21, Units: []string{"m=5"}}, {URL: large.URL, Backup: true, Daily: 1001}}})
	usable(t, p, 2)
	for i := range 10 {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	if small.asked("m") != 4 || large.asked("m") != 6 {
		t.Errorf("asked %d and %d times, expected 4 and 6", small.asked("m"), large.asked("m"))
	}
	if s := p.Status(); s[0].Today != 21 {
		t.Errorf("%d units are spent, expected 21", s[0].Today)
	}
}

// A node that throttles is left alone for as long as it says.
func TestThrottle(t *testing.T) {
	busy, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: append(nodesOf(busy), Node{URL: other.URL, Backup: true})})
	usable(t, p, 2)
	refused := 0
	busy.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			refused++
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
	})
	for i := range 5 {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	if refused != 1 || other.asked("m") != 5 {
		t.Errorf("the node was asked %d times, the other %d times", refused, other.asked("m"))
	}
}

// Several calls go in batches; what a node leaves out is asked again, and a node without
// batches gets single calls.
func TestAskAll(t *testing.T) {
	f := newFake(t, 7, 10)
	f.answer = func(_ string, params json.RawMessage) (any, *NodeError) { return params, nil }
	p := open(t, Config{Nodes: nodesOf(f), Batch: 10})
	usable(t, p, 1)
	ask := func() {
		t.Helper()
		var calls []Call
		for i := range 25 {
			calls = append(calls, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
		}
		for i, a := range p.AskAll(t.Context(), calls) {
			if a.Err != nil || string(a.Result) != fmt.Sprintf("[%d]", i) || a.Node == "" {
				t.Errorf("answer %d is %s, %v", i, a.Result, a.Err)
			}
		}
	}
	ask()
	if f.batch != 3 || f.asked("m") != 25 {
		t.Errorf("%d batches and %d calls, expected 3 and 25", f.batch, f.asked("m"))
	}
	f.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if body[0] != '[' {
				return false
			}
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`))
			return true
		}
	})
	ask()
	if f.asked("m") != 50 {
		t.Errorf("%d calls, expected 50", f.asked("m"))
	}
}

// A transaction is sent to several nodes; one that takes it is enough.
func TestBroadcast(t *testing.T) {
	bad, good, third := newFake(t, 7, 10), newFake(t, 7, 10), newFake(t, 7, 10)
	refuse := func(string, json.RawMessage) (any, *NodeError) { return nil, &NodeError{-32000, "nonce too low", nil} }
	bad.answer = refuse
	p := open(t, Config{Nodes: nodesOf(bad, good, third)})
	usable(t, p, 3)
	if a, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); err != nil && string(a.Result) != `"send"` && bad.asked("send") == 0 {
		t.Error(a, err)
	}
	good.set(func(f *fake) { f.answer = refuse })
	third.set(func(f *fake) { f.answer = refuse })
	var node *NodeError
	if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 3); !errors.As(err, &node) || node.Message != "nonce too low" {
		t.Error(err)
	}
}

// Answers that are too large, endless or no JSON-RPC are failures of the node.
func TestHostileAnswers(t *testing.T) {
	for name, raw := range map[string]func(w http.ResponseWriter, r *http.Request, body []byte) bool{
		"large": func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2000) + `"}`))
			return true
		},
		"endless": func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat(" ", 100))); err != nil {
					return true
				}
			}
			return true
		},
		"dropped": func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { panic(http.ErrAbortHandler) },
		"text": func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			_, _ = w.Write([]byte("hello"))
			return true
		},
		"empty": func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { _, _ = w.Write([]byte("{}")); return true },
		"moved": func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		},
	} {
		bad, good := newFake(t, 7, 10), newFake(t, 7, 10)
		p := open(t, Config{Bytes: 1000, Poll: time.Hour, Nodes: append(nodesOf(bad), Node{URL: good.URL, Backup: true})})
		usable(t, p, 2)
		bad.set(func(f *fake) { f.raw = raw })
		if got := mustAsk(t, p, Call{Method: "m"}); got != `"m"` {
			t.Errorf("%s: the answer is %s", name, got)
		}
		if s := p.Status()[0]; s.Failures != 1 {
			t.Errorf("%s: %d failures, expected 1", name, s.Failures)
		}
	}
}

// A node that fails again and again at a method is left alone, and asked for others.
func TestCircuitBreaker(t *testing.T) {
	bad, good := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: 5 * time.Millisecond, Nodes: append(nodesOf(bad), Node{URL: good.URL, Backup: true})})
	usable(t, p, 2)
	failures := 0
	bad.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if !strings.Contains(string(body), `"broken"`) {
				return false
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			failures++
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
	})
	begun := time.Now()
	for i := range 50 {
		mustAsk(t, p, Call{Method: "broken", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	bad.set(func(*fake) {
		if most := breakAfter + 1 + int(time.Since(begun)/time.Second); failures > most { // the break lasts a second
			t.Errorf("the node failed %d times, expected at most %d", failures, most)
		}
	})
	mustAsk(t, p, Call{Method: "other"})
	if bad.asked("other") != 1 {
		t.Error("the node was not asked for another method")
	}
}

// Neither errors nor the status show the URL of a node, which may hold a key.
func TestKeyIsNotShown(t *testing.T) {
	const key = "secret-of-mine"
	t.Setenv("UPSTREAM_TEST_KEY", key)
	var path, header string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, header = r.URL.Path, r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	p := open(t, Config{Wait: time.Millisecond, Nodes: []Node{
		{URL: server.URL + "/v2/{key}", KeyEnv: "UPSTREAM_TEST_KEY", Headers: []string{"Authorization: Bearer {key}"}},
		{URL: "http://127.0.0.1:1/" + key},
	}})
	until(t, "both nodes have failed", func() bool { s := p.Status(); return s[0].Failures > 0 && s[1].Failures > 0 })
	_, err := p.Ask(t.Context(), Call{Method: "m"})
	if text := fmt.Sprint(err, p.Status()); strings.Contains(text, key) {
		t.Errorf("the key is shown: %s", text)
	}
	if path != "/v2/"+key || header != "Bearer "+key {
		t.Errorf("path %s, header %q", path, header)
	}
}
