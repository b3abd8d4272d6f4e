package verified

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// counter passes requests on to a node and records those that answers need. The others follow
// the head.
type counter struct {
	to *node.Client

	mu       sync.Mutex
	requests [][]string // guarded by mu: the methods of each
}

// newCounter returns a counter in front of a node, and its URL.
func newCounter(t *testing.T, to *node.Client) (*counter, string) {
	c := &counter{to: to}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server.URL
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	calls, _ := readCalls(body)
	var methods []string
	for _, call := range calls {
		if !followsHead(call.Method, call.Params) {
			methods = append(methods, call.Method)
		}
	}
	if len(methods) > 0 {
		c.mu.Lock()
		c.requests = append(c.requests, methods)
		c.mu.Unlock()
	}
	status, answer, err := c.to.Post(r.Context(), body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// taken returns the requests since it was called last.
func (c *counter) taken() [][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.requests
	c.requests = nil
	return taken
}

// TestRequestsOfAnswers counts the requests to a node that answers need. They follow each
// other, and a batch is one request, so they are the rounds of an answer.
func TestRequestsOfAnswers(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	genesis := filepath.Join(folder, "genesis.json")
	geth := serveGeth(t, genesis, filepath.Join(folder, "chain.rlp"))
	c, url := newCounter(t, geth)
	_, client := network{check: "state", genesis: genesis, quorum: 1}.over(url).serve(t, headOf(t, geth))
	c.taken()
	const (
		account = `["0x7435ed30a8b4aeb0877cef0c6e8cffe834eb865f","latest"]`
		fee     = `[{"to":"0x00000961ef480eb55e80d19ad83579a64c007002"},"latest"]` // EIP-7002: it reads a slot
	)
	trace := func(block string) string {
		var found struct{ Transactions []string }
		if err := geth.Call(t.Context(), &found, "eth_getBlockByNumber", block, false); err != nil || len(found.Transactions) == 0 {
			t.Fatalf("block %s: %d transactions, %v", block, len(found.Transactions), err)
		}
		return `["` + found.Transactions[0] + `",{"tracer":"callTracer"}]`
	}
	for _, test := range []struct {
		name, method, params string
		most                 int
	}{
		{"balance", "eth_getBalance", account, 1},
		{"the same balance", "eth_getBalance", account, 0},
		{"nonce of the account", "eth_getTransactionCount", account, 0},
		{"call: guess, proofs with codes, what was guessed wrongly", "eth_call", fee, 3},
		{"the same call: guess", "eth_call", fee, 1},
		{"trace: witness", "debug_traceTransaction", trace("latest"), 1},
		{"trace of an early block: no witness, guess, proofs, what was guessed wrongly", "debug_traceTransaction", trace("0x2"), 4},
		{"the same trace: no witness, guess", "debug_traceTransaction", trace("0x2"), 2},
	} {
		answer, _ := client.post(t, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+test.method+`","params":`+test.params+`}`))
		requests := c.taken()
		if refused(answer) {
			t.Errorf("%s: %.300s", test.name, answer)
		}
		if len(requests) > test.most || len(requests) == 0 && test.most > 0 {
			t.Errorf("%s: the requests %v, want at most %d", test.name, requests, test.most)
		}
		t.Logf("%s: %v", test.name, requests)
	}
}
