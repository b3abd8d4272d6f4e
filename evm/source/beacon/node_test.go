package beacon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// A node's key goes with each request, be it in a header or in the URL, and to no other server than
// the node: a redirect is not followed.
func TestKeyOfNode(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed: %s with %q", r.URL, r.Header.Get("X-Key"))
	}))
	defer elsewhere.Close()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Header.Get("X-Key") != "header" || r.FormValue("key") != "query" || !strings.HasPrefix(r.URL.Path, "/base/eth/v1/") {
			t.Errorf("asked for %s with %q, expected both keys, below the URL's path", r.URL, r.Header.Get("X-Key"))
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	template, err := http.NewRequest(http.MethodGet, server.URL+"/base?key=query", nil)
	if err != nil {
		t.Fatal(err)
	}
	template.Header.Set("X-Key", "header")
	n := NewNode("node", template)
	defer n.http.CloseIdleConnections()
	questions := []func(context.Context) error{
		func(ctx context.Context) error { _, err := n.chain(ctx); return err },
		func(ctx context.Context) error { _, err := n.bootstrap(ctx, common.Hash{1}); return err },
		func(ctx context.Context) error { _, err := n.update(ctx, 7); return err },
		func(ctx context.Context) error { _, err := n.latest(ctx, "finality"); return err },
	}
	for i, question := range questions {
		if err := question(t.Context()); err == nil || !strings.Contains(err.Error(), "HTTP status 307") {
			t.Errorf("question %d: %v, expected the status of the redirect", i, err)
		}
	}
	if asked != len(questions) {
		t.Errorf("asked %d times, expected %d", asked, len(questions))
	}
}

// A request to a node ends, also if the node does not answer: it is asked nothing else meanwhile.
func TestRequestsEnd(t *testing.T) {
	template, err := http.NewRequest(http.MethodGet, "http://beacon.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode("node", template)
	limited := false
	n.http.Transport = transport(func(r *http.Request) (*http.Response, error) {
		_, limited = r.Context().Deadline()
		return nil, http.ErrHandlerTimeout
	})
	if _, err := n.latest(t.Context(), "finality"); err == nil || !limited {
		t.Errorf("%v, has a time limit: %t", err, limited)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A node cannot fill the log and the status: they show the beginning of an error.
func TestErrorsAreShort(t *testing.T) {
	f := follow(t, 1, nil)
	f.nodes[0].alter = func(path string, body []byte) []byte {
		return []byte(strings.Replace(string(body), `"SLOTS_PER_EPOCH":"`, `"SLOTS_PER_EPOCH":"`+strings.Repeat("1", 1<<13), 1))
	}
	_ = f.at(t, f.nodes[0].Steps[0].Slot)
	s := f.Status()
	if why := s.Nodes[0].Why; !strings.Contains(why, "SLOTS_PER_EPOCH is") || len(why) > 2000 || len(s.Problem) > 2000 {
		t.Errorf("the node is of no use because of %d bytes, the problem has %d: %.500s", len(why), len(s.Problem), why)
	}
}
