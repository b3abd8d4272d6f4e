package proven

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// served is a node that is asked over HTTP. It keeps its first answer to
// eth_getTransactionByHash back until release is closed.
type served struct {
	*testNode
	asked, release chan struct{}
	first          sync.Once
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     int
		Method string
		Params json.RawMessage
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	head := s.blocks[len(s.blocks)-1]
	var result any
	var err error
	switch {
	case q.Method == "eth_chainId":
		result = (*hexutil.Big)(s.chain.genesis.Config.ChainID)
	case strings.Contains(string(q.Params), `"latest"`):
		result = head.Header()
	case q.Method == "eth_getTransactionByHash":
		s.first.Do(func() {
			close(s.asked)
			<-s.release
		})
		result = map[string]any{"blockNumber": hexutil.Uint64(head.NumberU64() - 1), "transactionIndex": "0x0"}
	default:
		result, err = s.answer(upstream.Call{Method: q.Method, Params: q.Params})
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": result}
	if err != nil {
		delete(answer, "result")
		answer["error"] = map[string]any{"code": -32000, "message": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// A client that leaves does not fail the search for a transaction that another client has joined,
// and the node is not at fault.
func TestFirstCallerLeaves(t *testing.T) {
	c := newTestChain(t, 5)
	n := &served{testNode: c.node("a"), asked: make(chan struct{}), release: make(chan struct{})}
	server := httptest.NewServer(n)
	defer server.Close()
	pool, err := upstream.New(upstream.Config{Nodes: []upstream.Node{{URL: server.URL}}, Log: slog.New(slog.DiscardHandler), Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = pool.Run(ctx) })
	defer running.Wait()
	defer stop()
	remote := New(Config{Nodes: pool, Chain: c.genesis.Config, Genesis: c.blocks[0].Hash()})
	remote.spine.raise(refOf(c.blocks[5]), nil)
	hash := c.blocks[4].Transactions()[0].Hash()
	first, leave := context.WithCancel(t.Context())
	var leaving sync.WaitGroup
	leaving.Go(func() { _, _ = remote.FindTransaction(first, hash) })
	<-n.asked
	found := make(chan error, 1)
	go func() {
		place, err := remote.FindTransaction(t.Context(), hash)
		if err == nil && place.Number != 4 {
			t.Errorf("the transaction is in block %d, want 4", place.Number)
		}
		found <- err
	}()
	time.Sleep(100 * time.Millisecond) // it joins the first call
	leave()
	leaving.Wait()
	close(n.release)
	if err := <-found; err != nil {
		t.Error(err)
	}
	if s := pool.Status()[0]; s.Failures != 0 {
		t.Errorf("%d failures of the node", s.Failures)
	}
}
