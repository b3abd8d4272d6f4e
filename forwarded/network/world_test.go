package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/family"
	"ashlar/feed"
	"ashlar/forwarded/archive"
	"ashlar/forwarded/forwardtest"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/upstream"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// world is a served network with its nodes.
type world struct {
	t       *testing.T
	store   kv.Store
	network *network
	methods *jsonrpc.Methods
	stop    func()
}

func node(t *testing.T, chain forwardtest.Chain) *forwardtest.Node {
	n := forwardtest.New(chain)
	t.Cleanup(n.Stop)
	return n
}

func newStore(t *testing.T) kv.Store {
	store, err := pebble.Open(pebble.Options{Path: "forwarded", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := archive.Create(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return store
}

// serve serves a network of nodes in a store, until the test ends or stop is called.
func serve(t *testing.T, store kv.Store, change func(*Entries), nodes ...*forwardtest.Node) *world {
	t.Helper()
	return serveWithin(t, await.Patience, store, change, nodes...) // the race detector makes large answers slow
}

// serveWithin is serve with the time that a search for logs may take.
func serveWithin(t *testing.T, logTime time.Duration, store kv.Store, change func(*Entries), nodes ...*forwardtest.Node) *world {
	t.Helper()
	e := Family{}.Entries().(*Entries)
	e.Poll = 20 * time.Millisecond
	for _, n := range nodes {
		e.Upstream = append(e.Upstream, upstream.Node{URL: n.URL})
	}
	if change != nil {
		change(e)
	}
	opened, err := Family{}.Open(t.Context(), store, e, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, network: opened.(*network)}
	w.network.logTime = logTime
	if w.methods, err = opened.Serve(t.Context(), family.Service{Name: "test", Filters: feed.Limits{}.WithDefaults()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := opened.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(w.stop)
	return w
}

// call calls a method and returns its result as JSON, or its error as "code message data".
func (w *world) call(method, params string) string {
	w.t.Helper()
	m := w.methods.Find(method)
	if m == nil {
		w.t.Fatalf("the method %s is not served", method)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), await.Patience)
	defer cancel()
	out, err := m.Handler(ctx, []byte(params), nil)
	var known *jsonrpc.Error
	switch {
	case errors.As(err, &known) && known.Data != nil:
		return fmt.Sprint(known.Code, " ", known.Message, " ", known.Data)
	case errors.As(err, &known):
		return fmt.Sprint(known.Code, " ", known.Message)
	case err != nil:
		return "internal error: " + err.Error()
	}
	return string(out)
}

// expect calls a method and compares the answer, or parts of it if want begins with "…".
func (w *world) expect(method, params, want string) {
	w.t.Helper()
	got := w.call(method, params)
	if part, ok := strings.CutPrefix(want, "…"); ok && strings.Contains(got, part) || got == want {
		return
	}
	w.t.Errorf("%s%s: %.300s, want %.300s", method, params, got, want)
}

// atHead waits until the head has a number.
func (w *world) atHead(number uint64) {
	w.t.Helper()
	w.until(fmt.Sprintf("the head is %d", number), func() bool { return w.call("eth_blockNumber", "[]") == fmt.Sprintf(`"%#x"`, number) })
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not reached: %s", what)
		}
	}
}

// allUsed waits until all nodes are used.
func (w *world) allUsed() {
	w.t.Helper()
	w.until("all nodes are used", func() bool {
		status, _ := w.network.Status(w.t.Context())
		for _, u := range status.Source.Upstreams {
			if !u.Used {
				return false
			}
		}
		return true
	})
}
