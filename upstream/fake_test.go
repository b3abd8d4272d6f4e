package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// fake is a node whose behaviour a test sets.
type fake struct {
	*httptest.Server

	mu     sync.Mutex
	chain  uint64                                                        // guarded by mu
	head   uint64                                                        // guarded by mu
	answer func(method string, params json.RawMessage) (any, *NodeError) // guarded by mu; for methods other than those about the head
	raw    func(w http.ResponseWriter, r *http.Request, body []byte) bool
	count  map[string]int // guarded by mu: calls by method
	batch  int            // guarded by mu: batches
	// numbersOnly, if not nil, is the error for a block hash in place of a number.
	numbersOnly *NodeError // guarded by mu
}

func newFake(t *testing.T, chainID, head uint64) *fake {
	f := &fake{chain: chainID, head: head, count: make(map[string]int)}
	f.answer = func(method string, _ json.RawMessage) (any, *NodeError) { return method, nil }
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) asked(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[method]
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	raw := f.raw
	f.mu.Unlock()
	if raw != nil && raw(w, r, body) {
		return
	}
	var all []received
	if json.Unmarshal(body, &all) == nil {
		f.set(func(f *fake) { f.batch++ })
		var answers []any
		for _, one := range all {
			answers = append(answers, f.respond(one))
		}
		_ = json.NewEncoder(w).Encode(answers)
		return
	}
	var one received
	_ = json.Unmarshal(body, &one)
	_ = json.NewEncoder(w).Encode(f.respond(one))
}

// received is a request as a node reads it.
type received struct {
	ID     int
	Method string
	Params json.RawMessage
}

func (f *fake) respond(r received) any {
	f.mu.Lock()
	f.count[r.Method]++
	chainID, head, answer, numbersOnly := f.chain, f.head, f.answer, f.numbersOnly
	f.mu.Unlock()
	var result any
	var fault *NodeError
	switch r.Method {
	case "eth_chainId":
		result = fmt.Sprintf("%#x", chainID)
	case "eth_getBlockByNumber":
		result = map[string]string{"number": fmt.Sprintf("%#x", head), "hash": fmt.Sprintf("0x%064x", head+1), "parentHash": fmt.Sprintf("0x%064x", head), "timestamp": "0x1"}
	case "eth_getBalance": // the probe for block hashes
		result, fault = "0x0", numbersOnly
	default:
		result, fault = answer(r.Method, r.Params)
	}
	if fault != nil {
		return map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": fault}
	}
	return map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result}
}

// open runs a pool of nodes. They get a rival only when it is known what is usual: a machine that is
// busy for a second would have calls sent twice that tests count.
func open(t *testing.T, config Config) *Pool {
	t.Helper()
	if config.Poll == 0 {
		config.Poll = 20 * time.Millisecond
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.nodes {
		n.late = time.Hour
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return p
}

func nodesOf(fakes ...*fake) (all []Node) {
	for _, f := range fakes {
		all = append(all, Node{URL: f.URL})
	}
	return all
}

// awaitCallers waits until that many callers wait for the one call that is under way.
func awaitCallers(t *testing.T, p *Pool, want int) {
	t.Helper()
	until(t, fmt.Sprintf("%d wait for the call", want), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.flights {
			return f.waiting == want
		}
		return false
	})
}

// usable waits until that many nodes of a pool are usable.
func usable(t *testing.T, p *Pool, want int) {
	t.Helper()
	until(t, fmt.Sprintf("%d nodes are usable", want), func() bool {
		count := 0
		for _, s := range p.Status() {
			if s.Usable {
				count++
			}
		}
		return count == want
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reached: %s", what)
		}
	}
}
