package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A node that is late gets a rival, whose answer counts.
func TestHedge(t *testing.T) {
	slow, fast := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Nodes: append(nodesOf(slow), Node{URL: fast.URL, Backup: true})})
	usable(t, p, 2)
	for i := range 2 * enough {
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	stall := make(chan struct{})
	defer close(stall)
	slow.set(func(f *fake) {
		f.answer = func(string, json.RawMessage) (any, *NodeError) { <-stall; return "late", nil }
	})
	var asked atomic.Int64 // an earlier call's rival may still be on its way
	fast.set(func(f *fake) {
		f.answer = func(method string, params json.RawMessage) (any, *NodeError) {
			if string(params) == "[]" {
				asked.Add(1)
			}
			return method, nil
		}
	})
	if got := mustAsk(t, p, Call{Method: "m"}); got != `"m"` || asked.Load() != 1 {
		t.Errorf("the answer is %s, the rival was asked %d times", got, asked.Load())
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
	awaitCallers(t, p, 21)
	leave()
	awaitCallers(t, p, 20)
	close(hold)
	asking.Wait()
	if f.asked("m") != 1 {
		t.Errorf("asked %d times", f.asked("m"))
	}
}

// A caller that joins a call checks the answer as well: the other's check may accept more.
func TestJoinedCallsAreChecked(t *testing.T) {
	liar, honest := newFake(t, 7, 10), newFake(t, 7, 10)
	hold := make(chan struct{})
	liar.answer = func(string, json.RawMessage) (any, *NodeError) { <-hold; return "invented", nil }
	p := open(t, Config{Nodes: append(nodesOf(liar), Node{URL: honest.URL, Backup: true})})
	usable(t, p, 2)
	var asking sync.WaitGroup
	ask := func(want string, check func(json.RawMessage) error) {
		asking.Go(func() {
			if a, err := p.Ask(t.Context(), Call{Method: "m", Check: check}); err != nil || string(a.Result) != want {
				t.Errorf("the answer is %s, %v, expected %s", a.Result, err, want)
			}
		})
	}
	ask(`"invented"`, func(json.RawMessage) error { return nil })
	until(t, "the call is sent", func() bool { return liar.asked("m") == 1 })
	ask(`"m"`, func(result json.RawMessage) error {
		if string(result) != `"m"` {
			return fmt.Errorf("%w: %s", ErrLie, result)
		}
		return nil
	})
	awaitCallers(t, p, 2)
	close(hold)
	asking.Wait()
}

// A caller that joins a call does not fail because the other's check refuses the answer.
func TestJoinedCallsAreRefused(t *testing.T) {
	f := newFake(t, 7, 10)
	hold := make(chan struct{})
	f.answer = func(string, json.RawMessage) (any, *NodeError) { <-hold; return "right", nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	usable(t, p, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		if a, err := p.Ask(t.Context(), Call{Method: "m", Check: func(json.RawMessage) error { return Unfit("it is not what was asked for") }}); err == nil {
			t.Errorf("the answer is %s", a.Result)
		}
	})
	until(t, "the call is sent", func() bool { return f.asked("m") == 1 })
	asking.Go(func() {
		if a, err := p.Ask(t.Context(), Call{Method: "m"}); err != nil || string(a.Result) != `"right"` {
			t.Errorf("the answer is %s, %v", a.Result, err)
		}
	})
	awaitCallers(t, p, 2)
	close(hold)
	asking.Wait()
}

// A caller that rejects an answer gets another node's. A lie sets its node aside, and the last error is that of the checks.
func TestRejectedAnswers(t *testing.T) {
	first, second := newFake(t, 7, 10), newFake(t, 7, 10)
	second.answer = func(string, json.RawMessage) (any, *NodeError) { return "other", nil }
	p := open(t, Config{Nodes: append(nodesOf(first), Node{URL: second.URL, Backup: true})})
	usable(t, p, 2)
	errOdd := errors.New("it is odd")
	for lies, why := range []error{fmt.Errorf("%w: %w", errOdd, Unfit("odd")), fmt.Errorf("%w: %w", ErrLie, errOdd)} {
		c := Call{Method: "m"}
		for _, want := range []string{`"m"`, `"other"`} {
			a, err := p.Ask(t.Context(), c)
			if err != nil || string(a.Result) != want {
				t.Fatalf("%v: the answer is %s, %v, expected %s", why, a.Result, err, want)
			}
			p.Reject(&c, a, why)
		}
		if a, err := p.Ask(t.Context(), c); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errOdd) {
			t.Errorf("%v: the answer is %s, %v, expected an error of the checks", why, a.Result, err)
		}
		for _, s := range p.Status() {
			if s.Lies != uint64(lies) || s.Usable != (lies == 0) {
				t.Errorf("%v: %+v", why, s)
			}
		}
	}
	if first.asked("m") != 2 || second.asked("m") != 2 {
		t.Errorf("the nodes were asked %d and %d times, expected 2 and 2", first.asked("m"), second.asked("m"))
	}
}

// The check of a call is made once for its only caller.
func TestAnswersAreCheckedOnce(t *testing.T) {
	p := open(t, Config{Nodes: nodesOf(newFake(t, 7, 10))})
	usable(t, p, 1)
	var checks atomic.Int64
	mustAsk(t, p, Call{Method: "m", Check: func(json.RawMessage) error { checks.Add(1); return nil }})
	if checks.Load() != 1 {
		t.Errorf("checked %d times, expected once", checks.Load())
	}
}

// Logs that are too large are an answer, which no other node is asked for. A node that sends as much where no
// filter of a client selects it fails.
func TestTooLargeAnswers(t *testing.T) {
	err := fmt.Errorf("read: %w", ErrTooLarge)
	if why, _ := (&Call{Method: "eth_getLogs"}).faultOf(err); why != answered {
		t.Errorf("logs: %v", why)
	}
	if why, _ := (&Call{Method: "eth_getBlockByNumber"}).faultOf(err); why != failed {
		t.Errorf("a block: %v", why)
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
	if a, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); err != nil || string(a.Result) != `"send"` {
		t.Error(a, err)
	}
	good.set(func(f *fake) { f.answer = refuse })
	third.set(func(f *fake) { f.answer = refuse })
	var node *NodeError
	if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 3); !errors.As(err, &node) || node.Message != "nonce too low" {
		t.Error(err)
	}
}

// A node that takes no block hashes for states gets the params with numbers, in batches too.
func TestNumbered(t *testing.T) {
	f := newFake(t, 7, 10)
	f.numbersOnly = &NodeError{Code: -32602, Message: "expected a number"}
	f.answer = func(_ string, params json.RawMessage) (any, *NodeError) { return params, nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	usable(t, p, 1)
	call := Call{Method: "m", Params: json.RawMessage(`["hash"]`), Numbered: json.RawMessage(`["number"]`)}
	if got := mustAsk(t, p, call); got != `["number"]` {
		t.Errorf("one call: %s", got)
	}
	for _, a := range p.AskAll(t.Context(), []Call{call, call}) {
		if a.Err != nil || string(a.Result) != `["number"]` {
			t.Errorf("in a batch: %s, %v", a.Result, a.Err)
		}
	}
}

// A node that has dropped its head by the time it is probed takes block hashes.
func TestNumberedAfterReorganization(t *testing.T) {
	f := newFake(t, 7, 10)
	f.numbersOnly = &NodeError{Code: -32000, Message: "header for hash not found"}
	f.answer = func(_ string, params json.RawMessage) (any, *NodeError) { return params, nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	until(t, "the node was probed", func() bool { return f.asked("eth_getBalance") > 0 })
	usable(t, p, 1)
	until(t, "it was asked about its head again", func() bool { return f.asked("eth_getBlockByNumber") > 5 })
	call := Call{Method: "m", Params: json.RawMessage(`["hash"]`), Numbered: json.RawMessage(`["number"]`)}
	if got := mustAsk(t, p, call); got != `["hash"]` {
		t.Errorf("the node got %s", got)
	}
}

// Why a node refuses a transaction says more than that another node takes no calls.
func TestBroadcastRefused(t *testing.T) {
	busy, strict := newFake(t, 7, 10), newFake(t, 7, 10)
	busy.answer = func(string, json.RawMessage) (any, *NodeError) {
		return nil, &NodeError{-32005, "rate limit exceeded", nil}
	}
	strict.answer = func(string, json.RawMessage) (any, *NodeError) {
		time.Sleep(50 * time.Millisecond)
		return nil, &NodeError{-32000, "insufficient funds for gas * price + value", nil}
	}
	p := open(t, Config{Nodes: nodesOf(busy, strict)})
	usable(t, p, 2)
	var node *NodeError
	if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); !errors.As(err, &node) || node.Message != "insufficient funds for gas * price + value" {
		t.Error(err)
	}
}

// Answers to a batch are checked as others are.
func TestBatchesAreChecked(t *testing.T) {
	liar, good := newFake(t, 7, 10), newFake(t, 7, 10)
	liar.answer = func(string, json.RawMessage) (any, *NodeError) { return "invented", nil }
	p := open(t, Config{Nodes: append(nodesOf(liar), Node{URL: good.URL, Backup: true})})
	usable(t, p, 2)
	call := Call{Method: "m", Check: func(result json.RawMessage) error {
		if string(result) != `"m"` {
			return fmt.Errorf("%w: %s", ErrLie, result)
		}
		return nil
	}}
	for i, a := range p.AskAll(t.Context(), []Call{call, call}) {
		if a.Err != nil || string(a.Result) != `"m"` {
			t.Errorf("answer %d is %s, %v", i, a.Result, a.Err)
		}
	}
	if s := p.Status()[0]; liar.asked("m") == 0 || s.Lies == 0 {
		t.Errorf("the node that lies was asked %d times: %+v", liar.asked("m"), s)
	}
}

// Calls whose answers depend on different heads are not identical.
func TestCallsOfDifferentHeads(t *testing.T) {
	f := newFake(t, 7, 10)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	f.answer = func(string, json.RawMessage) (any, *NodeError) { <-hold; return 1, nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	usable(t, p, 1)
	var asking sync.WaitGroup
	for i, c := range []Call{{Method: "m"}, {Method: "m", AsOf: common.Hash{1}}, {Method: "m", AsOf: common.Hash{2}}, {Method: "m", Needs: 9}} {
		asking.Go(func() {
			if _, err := p.Ask(t.Context(), c); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	until(t, "each call is sent", func() bool { return f.asked("m") == 4 })
	release()
	asking.Wait()
}

// A call that changes something is sent to one node, once, even if that fails or is late.
func TestChangesAreSentOnce(t *testing.T) {
	first, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: append(nodesOf(first), Node{URL: other.URL, Backup: true})})
	usable(t, p, 2)
	p.nodes[0].mu.Lock()
	p.nodes[0].late = time.Millisecond
	p.nodes[0].mu.Unlock()
	first.set(func(f *fake) {
		f.answer = func(method string, _ json.RawMessage) (any, *NodeError) {
			time.Sleep(100 * time.Millisecond)
			return method, nil
		}
	})
	if a, err := p.Ask(t.Context(), Call{Method: "send", Once: true}); err != nil || other.asked("send") > 0 {
		t.Errorf("late: %s, %v; the other node was asked %d times", a.Result, err, other.asked("send"))
	}
	first.set(func(f *fake) {
		f.raw = func(http.ResponseWriter, *http.Request, []byte) bool { panic(http.ErrAbortHandler) } // perhaps it was done
	})
	if a, err := p.Ask(t.Context(), Call{Method: "send", Once: true}); err == nil || other.asked("send") > 0 {
		t.Errorf("failed: %s, %v; the other node was asked %d times", a.Result, err, other.asked("send"))
	}
}

// The error of a call has the beginning of what the nodes have sent, and not their keys: it is shown, also to clients, as why a
// network has no head.
func TestErrorsOfCallsAreShown(t *testing.T) {
	f := newFake(t, 7, 10)
	f.answer = func(string, json.RawMessage) (any, *NodeError) {
		return nil, &NodeError{Code: codeInternal, Message: "the plan of secret-key has no such thing " + strings.Repeat("<p>", 1<<12)}
	}
	p := open(t, Config{Nodes: Nodes{{URL: f.URL + "/v3/secret-key"}}})
	usable(t, p, 1)
	for name, ask := range map[string]func() error{
		"a call":             func() error { _, err := p.Ask(t.Context(), Call{Method: "m"}); return err },
		"a call that is one": func() error { _, err := p.Ask(t.Context(), Call{Method: "m", Once: true}); return err },
		"a broadcast":        func() error { _, err := p.Broadcast(t.Context(), Call{Method: "m", Once: true}, 3); return err },
	} {
		err := ask()
		var node *NodeError
		if !errors.As(err, &node) || !strings.Contains(node.Message, "secret-key") {
			t.Errorf("%s: %.200v wraps no error of the node", name, err)
		}
		if text := fmt.Sprint(err); strings.Contains(text, "secret-key") || !strings.Contains(text, "the plan of … has no") || len(text) > 2*shownBytes {
			t.Errorf("%s: %d bytes: %.200s", name, len(text), text)
		}
	}
}
