package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// forward starts a service whose answers come from nodes, checked in some way.
func forward(t *testing.T, check, genesis string, urls ...string) *node.Client {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entries := "poll: 100ms"
	if check == "state" {
		entries = "family: evm, genesis: " + genesis
	}
	upstream, _ := json.Marshal(urls) // cannot fail
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  dev: {upstream: %s, check: %s, %s}\n", upstream, check, entries)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "dev", Config: config}
	p, client, err := a.Serve(context.WithoutCancel(t.Context())) // which ends before the cleanups run
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the service said:\n%s", p.Output())
		}
	})
	return client
}

// front is a second way to geth, which can be down: connections are closed without an answer.
type front struct {
	*httptest.Server
	down atomic.Bool
}

func startFront(t *testing.T, u *upstream) *front {
	t.Helper()
	to, err := url.Parse(u.client.URL)
	if err != nil {
		t.Fatal(err)
	}
	f, proxy := new(front), httputil.NewSingleHostReverseProxy(to)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.down.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// TestForwardGeth serves the answers of geth, which is reached in two ways, one of which is down for a
// while. The chain is wound back repeatedly. Clients get each log once, and those of dropped blocks as removed;
// Ponder indexes the chain meanwhile, and anvil forks it.
func TestForwardGeth(t *testing.T) {
	for _, check := range []string{"none", "headers", "state"} {
		t.Run(check, func(t *testing.T) { forwardGeth(t, check) })
	}
}

func forwardGeth(t *testing.T, check string) {
	u, genesis := startGeth(t, false)
	second := startFront(t, u)
	service := forward(t, check, genesis, u.client.URL, second.URL)
	first, others := subscribe(t, service), startClients(t, service)
	index := startPonder(t, service, u)
	missed := warmUp(t, u, service, first, others)
	index.AwaitReady(t)

	asking, stop := context.WithCancel(t.Context())
	defer stop()
	asked := make(chan *answers, 1)
	go func() { asked <- (&answers{forwarded: true}).ask(asking, service) }()
	var forked *fork
	for round := range 4 {
		u.mine(perRound / 4)
		switch round {
		case 1:
			second.down.Store(true)
		case 2:
			second.down.Store(false)
		}
		awaitSameHead(t, service, u)
		awaitPonder(t, index, u)
		final, head := u.finalized(), u.head()
		to := max(final, head-min(head, 4)) // less than a round adds: a lower head is followed late
		if forked == nil {
			forked = startFork(t, service, u, to)
		}
		forked.check(t, u, round)
		if to < head {
			u.record() // geth may have included what a dropped block left over
			u.windBack(to)
		}
	}
	u.mineAbove()
	awaitSameHead(t, service, u)
	stop()
	got := <-asked
	u.record()
	got.check(t, u.blocks)
	t.Logf("%d blocks made, %d on the chain; %s", len(u.blocks), u.head()+1, got)
	checkNotifications(t, u, first, others, missed)
	checkPonder(t, index, u)
	sameAsGeth(t, service, u)
	for _, c := range others {
		c.stop()
	}
}

// awaitSameHead returns when the service has geth's head, which may move meanwhile.
func awaitSameHead(t *testing.T, service *node.Client, u *upstream) {
	t.Helper()
	await(t, "the same head", func() bool {
		u.record()
		return tagged(t, service, "latest") == tagged(t, u.client, "latest")
	})
}

// sameAsGeth compares every block, its receipts and the counter with geth's.
func sameAsGeth(t *testing.T, service *node.Client, u *upstream) {
	t.Helper()
	for number := uint64(0); number <= u.head(); number++ {
		for _, question := range []struct {
			method string
			params []any
		}{
			{"eth_getBlockByNumber", []any{hexutil.Uint64(number), true}},
			{"eth_getBlockReceipts", []any{hexutil.Uint64(number)}},
			{"eth_getStorageAt", []any{counter, "0x0", hexutil.Uint64(number)}},
		} {
			got := call[any](t, service, question.method, question.params...)
			want := call[any](t, u.client, question.method, question.params...)
			if block, ok := got.(map[string]any); ok && number == 0 {
				delete(block, "totalDifficulty") // a block of the archive has it
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s of block %d differs:\n%v\n%v", question.method, number, got, want)
			}
		}
	}
}
