package network

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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

// A node that hangs, and many accounts that ask it, do not keep the calls of other networks waiting.
func TestOtherNetworksBesideANodeThatHangs(t *testing.T) {
	const keys, light = 16, 8
	n := node(t, forwardtest.Chain{Head: 20, Final: 5})
	w := serve(t, newStore(t), nil, n)
	w.atHead(20)
	hang := make(chan struct{})
	n.Set(func(n *forwardtest.Node) {
		n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-hang:
				return false
			case <-r.Context().Done(): // nobody waits for the answer any more
				return true
			}
		}
	})
	other := jsonrpctest.Methods(jsonrpc.Handlers{"test_true": func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, "true"...), nil }})
	handler, err := gateway.New(gateway.Config{
		Keys: eachKey{}, Limits: gateway.Limits{Light: light},
		Networks: []gateway.Network{{Name: "hanging", Methods: w.methods}, {Name: "other", Methods: other}},
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
	post := func(network string, key int, call string) string {
		url := fmt.Sprintf("http://%s/%s/v3/%032d", server.Addr(), network, key)
		response, err := http.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+call+`}`))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		answer, _ := io.ReadAll(response.Body)
		return string(answer)
	}
	for key := range keys {
		asking.Go(func() {
			post("hanging", key, fmt.Sprintf(`"method":"eth_getBalance","params":["0x%040x","latest"]`, key))
		})
	}
	await.Until(t, "all to wait", func() bool { s := handler.Stats(); return s.LightRunning+s.LightWaiting == keys })
	waiting := handler.Stats().LightWaiting
	answered := make(chan string, 1)
	go func() { answered <- post("other", keys, `"method":"test_true"`) }()
	await.Until(t, "the other network to answer", func() bool { return len(answered) > 0 || handler.Stats().LightWaiting > waiting })
	if len(answered) == 0 {
		t.Error("a call of another network waits for a slot")
	}
	close(hang)
	asking.Wait()
	stop()
	running.Wait()
}
