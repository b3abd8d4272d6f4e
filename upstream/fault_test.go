package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
		{"eth_call", NodeError{Code: -32603, Message: "VM Exception while processing transaction: revert"}, false},
		{"eth_call", NodeError{Code: -32603, Message: "VM Exception while processing transaction: revert rate limit: method not found"}, false},
		{"eth_call", NodeError{Code: -32603, Message: "Error: VM Exception while processing transaction: reverted with reason string 'pruned'"}, false},
		{"eth_call", NodeError{Code: -32000, Message: "missing trie node 12 (path )"}, true},
		{"eth_call", NodeError{Code: -32000, Message: "header not found"}, true},
		{"eth_call", NodeError{Code: -32603, Message: "oops"}, true},
		{"eth_call", NodeError{Code: -32601, Message: "the method eth_call does not exist/is not available"}, true},
		{"eth_call", NodeError{Code: 429, Message: "daily request count exceeded, request rate limited"}, true},
		{"eth_call", NodeError{Code: -32005, Message: "request rate exceeded"}, true}, // in a batch, of which the rest was answered
		{"eth_getLogs", NodeError{Code: -32005, Message: "request rate of the account exceeded: the rate limit is 20 credits per second"}, true},
		{"eth_getLogs", NodeError{Code: -32005, Message: "daily quota exceeded"}, true},
		{"eth_getLogs", NodeError{Code: -32005, Message: "the server is busy: try again later"}, true},
		{"eth_getLogs", NodeError{Code: -32000, Message: "failed to get logs for block #36 (0xf9c20a..b7a261)"}, true},
		{"eth_getLogs", NodeError{Code: -32602, Message: "block range extends beyond current head block"}, true},
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

// A node that throttles is left alone for as long as it says, up to a minute.
func TestThrottle(t *testing.T) {
	busy, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: append(nodesOf(busy), Node{URL: other.URL, Backup: true})})
	usable(t, p, 2)
	refused := 0
	busy.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			refused++
			w.Header().Set("Retry-After", "6000")
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
	if o := p.nodes[0].obstacle(new(Call), 7, time.Now()); o.kind != resting || time.Until(o.until) > longBreak {
		t.Errorf("the node is left alone for %v: %s", time.Until(o.until), o.why)
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
	usable(t, p, 2) // five failures in a row end the use of the node until it says what its head is
	mustAsk(t, p, Call{Method: "other"})
	if bad.asked("other") != 1 {
		t.Error("the node was not asked for another method")
	}
}

// A node that refuses calls of a client, again and again, answers: it is not down.
func TestRefusalsDoNotEndTheUse(t *testing.T) {
	f := newFake(t, 7, 10)
	f.answer = func(string, json.RawMessage) (any, *NodeError) {
		return nil, &NodeError{Code: codeInternal, Message: "internal error"}
	}
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	for i := range 2 * breakAfter {
		if _, err := p.Ask(t.Context(), Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)}); err == nil {
			t.Error("a refused call has an answer")
		}
	}
	if s := p.Status()[0]; !s.Usable || f.asked("m") != 2*breakAfter {
		t.Errorf("after %d refusals: %+v", f.asked("m"), s)
	}
}

// An error of a node is no answer about what nodes store: another node is asked, and no error of
// a node is returned if all give one.
func TestErrorsAboutWhatIsStored(t *testing.T) {
	bad, good := newFake(t, 7, 10), newFake(t, 7, 10)
	reverts := func(f *fake) {
		f.answer = func(string, json.RawMessage) (any, *NodeError) {
			return nil, &NodeError{Code: codeReverted, Message: "execution reverted"}
		}
	}
	bad.set(reverts)
	p := open(t, Config{Nodes: append(nodesOf(bad), Node{URL: good.URL, Backup: true})})
	usable(t, p, 2)
	if got := mustAsk(t, p, Call{Method: "m", Stored: true}); got != `"m"` {
		t.Errorf("the answer is %s", got)
	}
	var node *NodeError
	if _, err := p.Ask(t.Context(), Call{Method: "m"}); !errors.As(err, &node) {
		t.Errorf("a call that is run: %v, want the node's error", err)
	}
	good.set(reverts)
	if _, err := p.Ask(t.Context(), Call{Method: "m", Stored: true}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("all nodes fail: %v, want %v", err, ErrUnavailable)
	}
}

// What a node says about a call is told, also if another node does not answer, in either order.
func TestSilenceSaysLess(t *testing.T) {
	silent, good := newFake(t, 7, 10), newFake(t, 7, 10)
	silent.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if strings.Contains(string(body), `"m"`) {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}
	})
	unknown := errors.New("it does not have the transaction")
	check := func(json.RawMessage) error { return fmt.Errorf("%w (%w)", unknown, Unfit("unknown")) }
	for _, nodes := range [][]Node{nodesOf(silent, good), nodesOf(good, silent)} {
		nodes[1].Backup = true // it is asked second
		p := open(t, Config{Nodes: nodes})
		usable(t, p, 2)
		if _, err := p.Ask(t.Context(), Call{Method: "m", Check: check}); !errors.Is(err, unknown) {
			t.Errorf("%v, want %v", err, unknown)
		}
	}
}

// A call is refused at once, with the reason, if no node can take it for longer than a call may
// wait.
func TestRefusedAtOnce(t *testing.T) {
	pruned := NodeError{Code: -32000, Message: "missing trie node 12"}
	for _, c := range []struct {
		what string
		node Node
		call Call
		want error
	}{
		{"set aside", Node{}, Call{Method: "m", Check: func(json.RawMessage) error { return ErrLie }}, ErrUnavailable},
		{"without the history", Node{}, Call{Method: "old", History: States}, ErrPruned},
		{"without credits", Node{Daily: 1000, Units: []string{"m=600"}}, Call{Method: "m"}, ErrUnavailable},
	} {
		t.Run(c.what, func(t *testing.T) {
			var nodes []Node
			for range 2 {
				f := newFake(t, 7, 1000)
				f.answer = func(method string, _ json.RawMessage) (any, *NodeError) {
					if method == "old" {
						return nil, &pruned
					}
					return method, nil
				}
				c.node.URL = f.URL
				nodes = append(nodes, c.node)
			}
			awaitDay(t)
			p := open(t, Config{Nodes: nodes, Poll: time.Hour, Wait: 30 * time.Second})
			usable(t, p, 2)
			for range nodes {
				_, _ = p.Ask(t.Context(), c.call)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a call that waits would take
			defer cancel()
			_, err := p.Ask(ctx, c.call)
			if !errors.Is(err, c.want) || ctx.Err() != nil {
				t.Errorf("the error is %v, want %v at once", err, c.want)
			}
			var all *AsideError
			if lied := c.call.Check != nil; errors.As(err, &all) != lied || errors.As(p.Aside(), &all) != lied {
				t.Errorf("all are set aside: %v, %v", err, p.Aside())
			} else if lied && (!strings.Contains(err.Error(), "no upstream can answer for ") || p.Status()[0].Aside.Before(all.Until)) {
				t.Errorf("%v, %+v", err, p.Status()[0])
			}
		})
	}
}

// A call waits for a node that may come back in time, although all others are set aside.
func TestWaitsForANodeThatIsDown(t *testing.T) {
	liar, other := newFake(t, 7, 10), newFake(t, 7, 10)
	var down atomic.Bool
	down.Store(true)
	other.raw = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		return down.Load()
	}
	p := open(t, Config{Nodes: nodesOf(liar, other), Wait: time.Hour})
	usable(t, p, 1)
	p.SetAside(p.Status()[0].Name, ErrLie)
	time.AfterFunc(50*time.Millisecond, func() { down.Store(false) })
	if got := mustAsk(t, p, Call{Method: "m"}); got != `"m"` || other.asked("m") != 1 {
		t.Errorf("the answer is %s", got)
	}
}

// A call about a new head waits for a node that does not have it yet if the one that named it
// fails.
func TestWaitsForANodeThatIsBehind(t *testing.T) {
	first, other := newFake(t, 7, 11), newFake(t, 7, 10)
	first.raw = func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
		if strings.Contains(string(body), `"m"`) {
			other.set(func(f *fake) { f.head = 11 })
			panic(http.ErrAbortHandler)
		}
		return false
	}
	p := open(t, Config{Nodes: nodesOf(first, other), Wait: time.Hour})
	usable(t, p, 2)
	if got := mustAsk(t, p, Call{Method: "m", Needs: 11}); got != `"m"` || other.asked("m") != 1 {
		t.Errorf("the answer is %s", got)
	}
}

// A node that does not have a block that a call names may be on another branch, or lag: another node is asked. These are answers of
// reth 2.5.1.
func TestBlocksThatRethLacks(t *testing.T) {
	hash := "0x" + strings.Repeat("1b", 32)
	for _, said := range []*NodeError{
		{Code: -32000, Message: "block " + hash + " not found"}, // debug_traceBlockByHash
		{Code: -32000, Message: "block 0xffff not found"},       // debug_traceBlockByNumber
		{Code: -32000, Message: "block not found: hash " + hash},
		{Code: -32001, Message: "block not found: hash " + hash},
		{Code: -32602, Message: "block range extends beyond current head block: requested 65535, head 54"},
	} {
		lacking, other := newFake(t, 7, 10), newFake(t, 7, 10)
		lacking.answer = func(string, json.RawMessage) (any, *NodeError) { return nil, said }
		other.answer = func(string, json.RawMessage) (any, *NodeError) { return "0x1", nil }
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(lacking, other)})
		usable(t, p, 2)
		for range 8 { // either node is asked first
			answer, err := p.Ask(t.Context(), Call{Method: "debug_traceBlockByHash", Params: json.RawMessage(`["` + hash + `"]`)})
			if err != nil || string(answer.Result) != `"0x1"` {
				t.Errorf("%s: %s, %v, want the answer of the other node", said.Message, answer.Result, err)
			}
		}
		if !LacksBlock(said) {
			t.Errorf("%s: not taken for a missing block", said.Message)
		}
	}
}
