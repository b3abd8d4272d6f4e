package network

import (
	"bytes"
	"context"
	"encoding/json"
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
)

// anyKey is a [gateway.Keys] that accepts every key.
type anyKey struct{}

func (anyKey) Check(string) (*account.Key, bool) { return new(account.Key), true }

// TestCallsWaitSideBySide: calls that wait for a node take no slots of heavy calls, of which there are two for
// each processor. Else a node that answers after 300 ms would bound an account to a few calls a second.
func TestCallsWaitSideBySide(t *testing.T) {
	const calls = 16
	n := node(t, forwardtest.Chain{Head: 20, Final: 5})
	w := serve(t, newStore(t), nil, n)
	w.atHead(20)
	var arrived atomic.Int32
	all := make(chan struct{}) // closed when all calls are at the node
	n.Set(func(n *forwardtest.Node) {
		n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"eth_call"`)) {
				if arrived.Add(1) == calls {
					close(all)
				}
				select {
				case <-all:
				case <-r.Context().Done(): // nobody waits for the answer any more
				}
			}
			return false
		}
		n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
			return "0x01", nil, method == "eth_call"
		}
	})
	handler, err := gateway.New(gateway.Config{
		Keys: anyKey{}, Networks: []gateway.Network{{Name: "test", Methods: w.methods}}, Limits: gateway.Limits{Heavy: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Listen(t.Context(), gateway.ListenConfig{Address: "127.0.0.1:0"}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running, asking sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for i := range calls {
		asking.Go(func() {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x%040x"},"latest"]}`, i+1)
			response, err := http.Post("http://"+server.Addr().String()+"/v3/0123456789abcdef0123456789abcdef", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if answer, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(answer), `"result":"0x01"`) {
				t.Errorf("%s, %v, want the node's answer", answer, err)
			}
		})
	}
	asking.Wait()
	stop()
	running.Wait()
}
