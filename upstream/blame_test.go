package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// A node that quotes what a client has sent says nothing about itself: no client can make it count as
// busy, or as lacking a method or history, for all the others.
func TestQuotedParamsSayNothing(t *testing.T) {
	for _, quoted := range []string{"rate limit", "Too Many Requests", "method not found", "pruned", "block not found", "block 0x12 not found", "internal error"} {
		f := newFake(t, 7, 1000)
		f.answer = func(_ string, params json.RawMessage) (any, *NodeError) {
			var texts []string
			if json.Unmarshal(params, &texts) == nil && texts[1] != "0x0" {
				return nil, &NodeError{Code: -32602, Message: fmt.Sprintf("invalid hex in storage key: %q", texts[1])}
			}
			return "0x1", nil
		}
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
		usable(t, p, 1)
		ask := func(slot string) error {
			_, err := p.Ask(t.Context(), Call{Method: "eth_getStorageAt", Params: json.RawMessage(`["0x12",` + slot + `]`), History: States, About: 1})
			return err
		}
		for _, slot := range []string{`"` + quoted + `"`, fmt.Sprintf(`"\u%04x%s"`, quoted[0], quoted[1:])} {
			var node *NodeError
			if err := ask(slot); !errors.As(err, &node) || errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %v, expected the error of the node", slot, err)
			}
			if err := ask(`"0x0"`); err != nil {
				t.Errorf("another call after %s: %v", slot, err)
			}
		}
	}
}

// A tracer that a client wrote can throw any text. These are answers of geth to tracers that throw
// 'ra'+'te limit', so that the text is not in the params.
func TestThrownTextsSayNothing(t *testing.T) {
	for _, message := range []string{
		"rate limit at <eval>:1:14(4)",
		"method not found at result (<eval>:1:21(4))    in server-side tracer function 'result'",
	} {
		f := newFake(t, 7, 10)
		f.answer = func(method string, _ json.RawMessage) (any, *NodeError) {
			if method == "debug_traceCall" {
				return nil, &NodeError{Code: -32000, Message: message}
			}
			return "0x1", nil
		}
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
		usable(t, p, 1)
		for _, tracer := range []string{"{}", "<eval>:"} {
			_, err := p.Ask(t.Context(), Call{Method: "debug_traceCall", Params: fmt.Appendf(nil, "[{\"tracer\":%q}]", tracer)})
			if node := (*NodeError)(nil); !errors.As(err, &node) || errors.Is(err, ErrUnavailable) {
				t.Errorf("%v, expected the error %q", err, message)
			}
		}
		if _, err := p.Ask(t.Context(), Call{Method: "eth_call"}); err != nil {
			t.Errorf("another call after %q: %v", message, err)
		}
	}
}

// A call that is too large for the nodes says nothing about them: others go on to be answered.
func TestCallsThatAreTooLarge(t *testing.T) {
	one, other := newFake(t, 7, 10), newFake(t, 7, 10)
	for _, f := range []*fake{one, other} {
		f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if len(body) < 1000 {
				return false
			}
			http.Error(w, "Request Entity Too Large", http.StatusRequestEntityTooLarge)
			return true
		}
	}
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(one, other)})
	usable(t, p, 2)
	for i := range 2 * breakAfter {
		params := fmt.Appendf(nil, `["%0*d"]`, 1000, i)
		if _, err := p.Ask(t.Context(), Call{Method: "eth_call", Params: params}); !errors.Is(err, ErrCallTooLarge) {
			t.Fatalf("a large call: %v, expected that it is too large", err)
		}
		if _, err := p.Ask(t.Context(), Call{Method: "eth_call", Params: json.RawMessage(`["0x"]`)}); err != nil {
			t.Fatalf("a call after %d that were too large: %v", i+1, err)
		}
	}
	for _, s := range p.Status() {
		if !s.Usable {
			t.Errorf("a node is not used: %s", s.Why)
		}
	}
}

// A firewall before a node refuses calls because of what a client has put into them. Other calls go on
// to be answered.
func TestRefusedCallsSayNothing(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotAcceptable} {
		one, other := newFake(t, 7, 10), newFake(t, 7, 10)
		for _, f := range []*fake{one, other} {
			f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if !bytes.Contains(body, []byte("union select")) {
					return false
				}
				http.Error(w, "<html>blocked</html>", status)
				return true
			}
		}
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(one, other)})
		usable(t, p, 2)
		for i := range 2 * breakAfter {
			_, err := p.Ask(t.Context(), Call{Method: "eth_call", Params: fmt.Appendf(nil, `["union select %d"]`, i)})
			if !errors.Is(err, ErrCallRefused) || !errors.Is(err, ErrUnavailable) {
				t.Fatalf("status %d: %v, expected that the call is refused", status, err)
			}
			if _, err := p.Ask(t.Context(), Call{Method: "eth_call", Params: json.RawMessage(`["0x"]`)}); err != nil {
				t.Fatalf("status %d: a call after %d that were refused: %v", status, i+1, err)
			}
		}
		for _, s := range p.Status() {
			if !s.Usable {
				t.Errorf("status %d: a node is not used: %s", status, s.Why)
			}
		}
	}
}

// A node that refuses the key of the operator has not answered the call, although it sends a JSON-RPC
// error: another node is asked, and no client sees what the node says about the key.
func TestKeyIsRefused(t *testing.T) {
	for _, c := range []struct {
		status      int
		message     string
		unsupported bool // is how the error is understood
	}{
		{http.StatusUnauthorized, "invalid project id", false},
		{http.StatusPaymentRequired, "the plan has ended", false},
		{http.StatusForbidden, "project ID is disabled", false},
		{http.StatusForbidden, "method not allowed: the rules of the key list others", true},
	} {
		bad, good := newFake(t, 7, 10), newFake(t, 7, 10)
		bad.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if !bytes.Contains(body, []byte(`"m"`)) {
				return false
			}
			w.WriteHeader(c.status)
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "error": NodeError{Code: -32600, Message: c.message}})
			return true
		}
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: append(nodesOf(bad), Node{URL: good.URL, Backup: true})})
		usable(t, p, 2)
		if got := mustAsk(t, p, Call{Method: "m"}); got != `"m"` {
			t.Errorf("%s: the answer is %s", c.message, got)
		}
		if supported := p.Status()[0].Methods["m"]; supported == c.unsupported {
			t.Errorf("%s: the method counts as supported: %t", c.message, supported)
		}
		alone := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(bad)})
		usable(t, alone, 1)
		var node *NodeError
		if _, err := alone.Ask(t.Context(), Call{Method: "m"}); errors.As(err, &node) != c.unsupported {
			t.Errorf("%s: without another node: %v", c.message, err)
		}
	}
}

// A plan that allows only short ranges of logs says so with status 403: the range can be divided.
func TestRangeOfAPlanIsRefused(t *testing.T) {
	f := newFake(t, 7, 10)
	f.raw = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !bytes.Contains(body, []byte("eth_getLogs")) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Block range limit exceeded"}}`))
		return true
	}
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	var node *NodeError
	if _, err := p.Ask(t.Context(), Call{Method: "eth_getLogs"}); !errors.As(err, &node) || !IsTooMuch(node) {
		t.Errorf("%v, expected the error of the node", err)
	}
}

// A call that changes something and is too large for a node is sent to the next one, once to each: the node has not taken it.
func TestLargeChangesAreSentElsewhere(t *testing.T) {
	strict, backup := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: append(nodesOf(strict), Node{URL: backup.URL, Backup: true})})
	usable(t, p, 2)
	refused := refuse(strict, `"send"`, http.StatusRequestEntityTooLarge, inText)
	if got := mustAsk(t, p, Call{Method: "send", Once: true}); got != `"send"` || refused.Load() != 1 || backup.asked("send") != 1 {
		t.Errorf("%s; sent to the nodes %d and %d times, expected once each", got, refused.Load(), backup.asked("send"))
	}
	taken := refuse(backup, `"send"`, http.StatusRequestEntityTooLarge, inText)
	if _, err := p.Ask(t.Context(), Call{Method: "send", Once: true}); !errors.Is(err, ErrCallTooLarge) || refused.Load() != 2 || taken.Load() != 1 {
		t.Errorf("%v; sent %d and %d times", err, refused.Load(), taken.Load())
	}
}

// Clients are told that a call is too large only if it is for all nodes: another one may have taken a transaction and
// not said so.
func TestTooLargeForSome(t *testing.T) {
	strict, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(strict, other)})
	usable(t, p, 2)
	refuse(strict, `"send"`, http.StatusRequestEntityTooLarge, inText)
	for status, want := range map[int]error{http.StatusBadGateway: ErrUncertain, http.StatusRequestEntityTooLarge: ErrCallTooLarge} {
		refuse(other, `"send"`, status, inText)
		if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); !errors.Is(err, want) || errors.Is(err, ErrCallTooLarge) != (want == ErrCallTooLarge) {
			t.Errorf("the other node answers with status %d: %v, expected %v", status, err, want)
		}
	}
}
