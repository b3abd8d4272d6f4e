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
	"sync/atomic"
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

// A node that does not have the newest state yet is asked for it again.
func TestNewStates(t *testing.T) {
	f := newFake(t, 7, 100)
	f.answer = func(string, json.RawMessage) (any, *NodeError) {
		return nil, &NodeError{-32000, "missing trie node", nil}
	}
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	call := Call{Method: "m", History: States, About: 100 - Shallow + 1}
	if a, err := p.Ask(t.Context(), call); err == nil {
		t.Errorf("the answer is %s", a.Result)
	}
	f.set(func(f *fake) {
		f.answer = func(method string, _ json.RawMessage) (any, *NodeError) { return method, nil }
	})
	mustAsk(t, p, call)
}

// A redirect does not take the key of a node to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var seen atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	f := newFake(t, 7, 10)
	f.raw = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		return true
	}
	p := open(t, Config{Nodes: []Node{{URL: f.URL, Headers: []string{"X-Key: secret"}}}})
	until(t, "the node has failed", func() bool { return p.Status()[0].Failures > 1 })
	if seen.Load() > 0 {
		t.Error("the other host was asked")
	}
}

// A daily budget is spent by calls, five of which are a poll; without one the other node is asked.
func TestBudget(t *testing.T) {
	awaitDay(t)
	small, large := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: []Node{{URL: small.URL, Daily: 25, Units: []string{"m=5"}}, {URL: large.URL, Backup: true, Daily: 1001}}})
	usable(t, p, 2)
	for i := range 10 {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	if small.asked("m") != 4 || large.asked("m") != 6 {
		t.Errorf("asked %d and %d times, expected 4 and 6", small.asked("m"), large.asked("m"))
	}
	if today := spentToday(p.nodes[0]); today != 25 {
		t.Errorf("%d units are spent, expected 25", today)
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
