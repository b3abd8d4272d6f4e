package network

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ashlar/account"
	"ashlar/forwarded/forwardtest"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

// eachKey is a [gateway.Keys] with as many keys as there are texts.
type eachKey struct{}

func (eachKey) Check(key string) (*account.Key, bool) {
	var id account.KeyID
	copy(id[:], key[len(key)-len(id):])
	return &account.Key{ID: id}, true
}

// hanging is a server with two networks: the node of one hangs, and the other has the methods test_light and test_heavy.
type hanging struct {
	handler *gateway.Handler
	url     string
	asking  sync.WaitGroup
	asked   atomic.Int32 // calls with long parameters that the node has got
}

// serveHanging serves such networks, one with a node whose head is at a number, until the test ends. Then the node answers.
func serveHanging(t *testing.T, limits gateway.Limits, n *forwardtest.Node, head uint64, change func(*Entries)) *hanging {
	t.Helper()
	w := serve(t, newStore(t), change, n)
	w.atHead(head)
	h, hang := new(hanging), make(chan struct{})
	n.Set(func(n *forwardtest.Node) {
		n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if len(body) > jsonrpc.LongRequest {
				h.asked.Add(1)
			}
			select {
			case <-hang:
				return false
			case <-r.Context().Done(): // nobody waits for the answer any more
				return true
			}
		}
	})
	answers := func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, "true"...), nil }
	heavy := jsonrpctest.Method("test_heavy", answers)
	heavy.Cost = jsonrpc.Heavy(1)
	other := jsonrpctest.With(jsonrpctest.Methods(jsonrpc.Handlers{"test_light": answers}), heavy)
	var err error
	h.handler, err = gateway.New(gateway.Config{
		Keys: eachKey{}, Limits: limits, Networks: []gateway.Network{{Name: "hanging", Methods: w.methods}, {Name: "other", Methods: other}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Listen(t.Context(), gateway.ListenConfig{Address: "127.0.0.1:0"}, h.handler)
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + server.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		close(hang)
		h.asking.Wait()
		stop()
		running.Wait()
	})
	return h
}

// ask calls a method of a network with a key of a number.
func (h *hanging) ask(network string, key int, method, params string) string {
	url := fmt.Sprintf("%s/%s/v3/%032d", h.url, network, key)
	response, err := http.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	return string(answer)
}

// A node that hangs, and many accounts that ask it, do not keep the light calls of other networks waiting.
func TestLightCallsBesideANodeThatHangs(t *testing.T) {
	const keys = 16
	h := serveHanging(t, gateway.Limits{Light: 8}, node(t, forwardtest.Chain{Head: 20, Final: 5}), 20, nil)
	for key := range keys {
		h.asking.Go(func() { h.ask("hanging", 1+key, "eth_getBalance", fmt.Sprintf(`["0x%040x","latest"]`, key)) })
	}
	await.Until(t, "all to wait", func() bool { s := h.handler.Stats(); return s.LightRunning+s.LightWaiting == keys })
	waiting, answered := h.handler.Stats().LightWaiting, make(chan string, 1)
	h.asking.Go(func() { answered <- h.ask("other", 0, "test_light", "[]") })
	await.Until(t, "the other network to answer", func() bool { return len(answered) > 0 || h.handler.Stats().LightWaiting > waiting })
	if len(answered) == 0 {
		t.Error("a call of another network waits for a slot")
	}
}

// A call with long parameters has a heavy slot while they are decoded, and not while it waits for a node.
func TestHeavyCallsBesideANodeThatHangs(t *testing.T) {
	h := serveHanging(t, gateway.Limits{Light: 8, Heavy: 1}, node(t, forwardtest.Chain{Head: 20, Final: 5}), 20, func(e *Entries) { e.Methods = []string{"debug_test"} })
	data := strings.Repeat("00", jsonrpc.LongRequest)
	for key, call := range []struct{ method, params string }{
		{"eth_call", `[{"data":"0x` + data + `"},"latest"]`},
		{"eth_sendRawTransaction", `["0x` + data + `"]`},
		{"debug_test", `["0x` + data + `"]`},
	} {
		h.asking.Go(func() { h.ask("hanging", 1+key, call.method, call.params) })
		await.Until(t, "the call to be at the node, or for a slot", func() bool {
			return int(h.asked.Load()) > key || h.handler.Stats().HeavyWaiting > 0
		})
		if s := h.handler.Stats(); s.HeavyRunning+s.HeavyWaiting > 0 {
			t.Errorf("%s waits for the node in a heavy slot", call.method)
		}
	}
}

// Logs and receipts that are checked by header keep no heavy slot while they wait for nodes, however many calls wait.
func TestHeavyCallsBesideACheckedNodeThatHangs(t *testing.T) {
	for _, call := range []struct{ method, params string }{
		{"eth_getLogs", `[{"fromBlock":"0x%x","toBlock":"0x5"}]`},
		{"eth_getBlockReceipts", `["0x%x"]`},
		{"rollup_getEvents", `[{"from_block":{"block_number":%d},"to_block":{"block_number":5},"chunk_size":10}]`},
	} {
		t.Run(call.method, func(t *testing.T) {
			const keys = 16
			h := serveHanging(t, gateway.Limits{Light: 8, Heavy: 2}, nodeOf(t, emptyBlocks(t, 6)), 5, func(e *Entries) { e.Checked = checkHeaders })
			for key := range keys {
				h.asking.Go(func() { h.ask("hanging", 1+key, call.method, fmt.Sprintf(call.params, 1+key%5)) })
			}
			await.Until(t, "all to wait", func() bool {
				s := h.handler.Stats()
				return s.LightRunning+s.LightWaiting+s.HeavyRunning+s.HeavyWaiting == keys
			})
			waiting, answered := h.handler.Stats().HeavyWaiting, make(chan string, 1)
			h.asking.Go(func() { answered <- h.ask("other", 0, "test_heavy", "[]") })
			await.Until(t, "the other network to answer", func() bool { return len(answered) > 0 || h.handler.Stats().HeavyWaiting > waiting })
			if len(answered) == 0 {
				t.Error("a heavy call of another network waits for a slot")
			}
		})
	}
}
