package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answersWith has a node answer one method as told.
func answersWith(f *fake, method string, fail func(w http.ResponseWriter, r *http.Request)) {
	f.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if !strings.Contains(string(body), method) {
				return false
			}
			fail(w, r)
			return true
		}
	})
}

// A transaction for which no node has an answer may have been taken, unless it cannot have reached one.
func TestBroadcastUncertain(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	says := func(code int, message string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "error": NodeError{Code: code, Message: message}})
		}
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	const late, broke, failed = "one did not answer in time", "one broke off before its answer", "one failed"
	for _, c := range []struct {
		name       string
		one, other func(http.ResponseWriter, *http.Request)
		why        string // of the uncertainty; empty: it is certain that no node has the transaction
	}{
		{"late", hangs, hangs, late},
		{"broken off", breaks, breaks, broke},
		{"a proxy without the node", status(http.StatusBadGateway), status(http.StatusForbidden), failed},
		{"a proxy whose node is late", status(http.StatusGatewayTimeout), status(http.StatusForbidden), late},
		{"a node that fails", says(-32603, "internal error"), status(http.StatusForbidden), failed},
		{"a node that says that it was late", says(-32000, "request timed out"), status(http.StatusForbidden), late},
		{"one throttled", breaks, says(-32005, "rate limit exceeded"), broke},
		{"both refuse", status(http.StatusForbidden), status(http.StatusTooManyRequests), ""},
		{"too large", status(http.StatusRequestEntityTooLarge), status(http.StatusForbidden), ""},
		{"Ashlar without nodes", says(-32000, "no node took the transaction: no upstream can answer: try again later"), status(http.StatusForbidden), ""},
		{"forwarding Ashlar without nodes", says(-32000, "no upstream node can answer now: try again later"), status(http.StatusForbidden), ""},
		{"busy Ashlar", says(-32005, "the server is busy: try again later"), status(http.StatusForbidden), ""},
		{"one refuses the transaction", breaks, says(-32000, "nonce too low"), ""},
		{"Ashlar whose node is late", says(-32000, Unconfirmed(errSlow).Error()), status(http.StatusForbidden), late},
		{"Ashlar whose node is late, one refuses the transaction", says(-32000, Unconfirmed(errSlow).Error()), says(-32000, "nonce too low"), ""},
	} {
		one, other := newFake(t, 7, 10), newFake(t, 7, 10)
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Time: 2 * time.Second, Nodes: nodesOf(one, other)})
		usable(t, p, 2)
		answersWith(one, "send", c.one)
		answersWith(other, "send", c.other)
		_, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2)
		if err == nil || errors.Is(err, ErrUncertain) != (c.why != "") {
			t.Errorf("%s: %v", c.name, err)
		} else if c.why != "" && !strings.Contains(Unconfirmed(err).Error(), ": "+c.why+" and may have taken it: ") {
			t.Errorf("%s: %v, expected %q", c.name, Unconfirmed(err), c.why)
		}
	}
	gone := newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(gone)})
	usable(t, p, 1)
	gone.Close()
	p.nodes[0].to.http.CloseIdleConnections() // on which the call may have been sent
	if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); errors.Is(err, ErrUncertain) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("no node can be reached: %v", err)
	}
}

// A transaction for which there is no connection, because of TLS for example, has not been sent.
func TestBroadcastUnsent(t *testing.T) {
	node := newFake(t, 7, 10)
	to, err := url.Parse(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(node)})
	usable(t, p, 1)
	for name, address := range map[string]string{"an unknown certificate": secure.URL, "no TLS": "https" + strings.TrimPrefix(node.URL, "http")} {
		if p.nodes[0].to.template.URL, err = url.Parse(address); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); errors.Is(err, ErrUncertain) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A node that knows a transaction has it from one that was sent it and has not answered.
func TestBroadcastKnown(t *testing.T) {
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	says := func(code int, message string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "error": NodeError{Code: code, Message: message}})
		}
	}
	known := says(-32000, "already known")
	for _, c := range []struct {
		name       string
		one, other func(http.ResponseWriter, *http.Request)
		want       bool
	}{
		{"broken off", breaks, known, true},
		{"late", says(-32002, "request timed out"), known, true},
		{"known to both", known, known, false},
		{"one throttled", says(-32005, "rate limit exceeded"), known, false},
		{"of another type", breaks, says(-32000, "unknown transaction type"), false},
	} {
		one, other := newFake(t, 7, 10), newFake(t, 7, 10)
		p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(one, other)})
		usable(t, p, 2)
		answersWith(one, "send", c.one)
		answersWith(other, "send", c.other)
		if _, err := p.Broadcast(t.Context(), Call{Method: "send", Once: true}, 2); err == nil || errors.Is(err, ErrKnown) != c.want {
			t.Errorf("%s: %v, expected that the transaction is known: %t", c.name, err, c.want)
		}
	}
}

// Another Ashlar in front passes on that a transaction may have been taken, and does not send it elsewhere.
func TestMeaningOfUnconfirmed(t *testing.T) {
	for _, err := range []error{errSlow, &httpError{status: http.StatusBadGateway}, errors.New("EOF")} {
		e := &NodeError{Code: -32000, Message: Unconfirmed(fmt.Errorf("%w: %w", ErrUncertain, err)).Error()}
		if means := Meaning(e); means != MeansAnswer || IsTooMuch(e) {
			t.Errorf("%s: means %d, too much: %t; expected %d, false", e.Message, means, IsTooMuch(e), MeansAnswer)
		}
		if retryable(&Call{Method: "eth_sendRawTransactionSync", Once: true}, e) {
			t.Errorf("%s: another node would be asked", e.Message)
		}
	}
}
