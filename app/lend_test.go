package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/internal/await"
	"ashlar/kv"

	"github.com/coder/websocket"
)

// subscribed opens a WebSocket of a network with a subscription.
func subscribed(t *testing.T, s *Service, network, key string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+s.Addr().String()+"/"+network+"/ws/v3/"+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	askSocket(t, c, `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`)
	return c
}

// askSocket sends a request over a WebSocket and reads its answer, which must not be an error.
func askSocket(t *testing.T, c *websocket.Conn, request string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(request)); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := c.Read(t.Context()); err != nil || !strings.Contains(string(answer), `"result"`) {
		t.Fatalf("%s, %v", answer, err)
	}
}

// TestLendNetwork takes one of two networks out of service while it is asked: its requests
// are answered or refused, none fails otherwise, its WebSockets are closed, its store is
// free, and the other network is not disturbed. Given back, it is served again.
func TestLendNetwork(t *testing.T) {
	s, key := served(t, nil)
	data := s.config.Data
	makeStored(t, data, "evm", "second")
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	other, own := subscribed(t, s, "demo", key), subscribed(t, s, "second", key)
	asking, stop := context.WithCancel(t.Context())
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for asking.Err() == nil {
				for network, fine := range map[string][]int{"demo": {200}, "second": {200, 404, 503}} {
					response, err := http.Post("http://"+s.Addr().String()+"/"+network+"/v3/"+key, "application/json", strings.NewReader(blockNumber))
					if err != nil {
						t.Error(err)
						return
					}
					response.Body.Close()
					if !strings.Contains(fmt.Sprint(fine), fmt.Sprint(response.StatusCode)) {
						t.Errorf("network %s: status %d", network, response.StatusCode)
					}
				}
			}
		})
	}
	client, err := control.Dial(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b, loan, err := client.BorrowNetwork(t.Context(), control.Borrowing{Network: "second"})
	if err != nil || b.Listed {
		t.Fatalf("borrow: %+v, %v", b, err)
	}
	if _, _, err := own.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway || !strings.Contains(err.Error(), "no longer served") {
		t.Errorf("its WebSocket: %v", err)
	}
	opened, err := store.Dir(data).OpenNetwork("second", kv.Options{})
	if err != nil {
		t.Fatalf("its store is not free: %v", err)
	}
	if _, text := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics"); strings.Contains(text, `network="second"`) {
		t.Error("it is in the metrics")
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if err := loan.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.Network("second") != nil })
	stop()
	askers.Wait()
	eventually(t, func() bool { // the gateway learns of it last
		response, err := http.Post("http://"+s.Addr().String()+"/second/v3/"+key, "application/json", strings.NewReader(blockNumber))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	askSocket(t, other, blockNumber)
}

// TestLendNetworkTwice: of two commands that want one network, the second one gets it when the first one has given it
// back, and the server serves it after both. If it asked for it as for a network that is not served, it would go on beside
// the first one, and could keep the server from taking the network back.
func TestLendNetworkTwice(t *testing.T) {
	s, _ := served(t, nil)
	data := s.config.Data
	client, err := control.Dial(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, first, err := client.BorrowNetwork(t.Context(), control.Borrowing{Network: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lent.begin(t.Context(), "demo", time.Millisecond); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("lent twice: %v", err)
	}
	type borrowed struct {
		loan *control.Loan
		err  error
	}
	waited := make(chan borrowed)
	go func() {
		_, loan, err := client.BorrowNetwork(t.Context(), control.Borrowing{Network: "demo"})
		waited <- borrowed{loan, err}
	}()
	select {
	case b := <-waited:
		t.Fatalf("it did not wait for the first: %v", b.err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-waited
	if second.err != nil {
		t.Fatalf("after the first one: %v", second.err)
	}
	opened, err := store.Dir(data).OpenNetwork("demo", kv.Options{})
	if err != nil {
		t.Fatalf("its store is not free: %v", err)
	}
	if err := errors.Join(opened.Close(), second.loan.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.Network("demo") != nil })
}

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(await.Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}

// TestLendNetworkGivenUp: a command that ends while a network is being taken out of service
// changes nothing.
func TestLendNetworkGivenUp(t *testing.T) {
	s, key := served(t, nil)
	n := s.Network("demo")
	if !n.users.Enter() { // as a long request
		t.Fatal("not in use")
	}
	ctx, cancel := context.WithCancel(t.Context())
	lent := make(chan error)
	go func() { _, _, err := s.LendNetwork(ctx, control.Borrowing{Network: "demo"}); lent <- err }()
	eventually(t, func() bool { return s.Network("demo") == nil })
	cancel()
	if err := <-lent; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	n.users.Leave()
	end, err := s.lent.begin(t.Context(), "demo", 0)
	if err != nil {
		t.Fatal(err)
	}
	end()
	post(t, "http://"+s.Addr().String()+"/v3/"+key, blockNumber, http.StatusOK)
}

// TestAddNetworkReadsTheConfigurationAgain: a network is served with its entries in the file
// as they are now.
func TestAddNetworkReadsTheConfigurationAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ashlar.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("networks: {demo: {}}\n")
	data := t.TempDir()
	makeNetwork(t, data)
	load := func() (config.Config, error) {
		c, err := config.Load(file, Families())
		c.Data, c.Listen = data, "127.0.0.1:0"
		return c, err
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s, key, stop := runningWith(t, c, func(s *Service) { s.Load = load })
	defer stop()
	makeStored(t, data, "evm", "second")
	if err := s.AddNetwork(t.Context(), "second"); err == nil || !strings.Contains(err.Error(), "is not in the configuration") {
		t.Errorf("it is not listed: %v", err)
	}
	write("networks: {demo: {}, second: {hosts: [second.test]}}\nlimits: {heavy_calls: 1}\n")
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if c := s.current.Load(); c.Limits.HeavyCalls != 0 {
		t.Error("other entries were applied, too")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v3/"+key, strings.NewReader(blockNumber))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "second.test"
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("at its host: status %d", response.StatusCode)
	}
}

// refusing is a store that refuses writes, once there is a reason.
type refusing struct {
	kv.Store
	why *atomic.Pointer[error]
}

func (r refusing) Stats() kv.Stats {
	stats := r.Store.Stats()
	if why := r.why.Load(); why != nil {
		stats.Refused = *why
	}
	return stats
}

// refusingStores are stores of networks that are refusing.
type refusingStores struct {
	store.Stores
	why *atomic.Pointer[error]
}

func (s refusingStores) OpenNetwork(name string, o kv.Options) (kv.Store, error) {
	opened, err := s.Stores.OpenNetwork(name, o)
	return refusing{opened, s.why}, err
}

// TestLendRefusingNetwork: a network whose store refuses writes stays in service, because neither a command nor the server could
// open it again. It can be removed on a full disk, which makes space.
func TestLendRefusingNetwork(t *testing.T) {
	c := config.Default()
	c.Data, c.Listen, c.Operator = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	makeNetwork(t, c.Data)
	why := new(atomic.Pointer[error])
	s, key, stop := runningWith(t, c, func(s *Service) { s.stores = refusingStores{s.stores, why} })
	defer stop()
	makeStored(t, c.Data, "evm", "second")
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why  error
		what control.Borrowing
		lent bool
	}{
		{kv.ErrFull, control.Borrowing{Network: "second"}, false},
		{kv.ErrFailed, control.Borrowing{Network: "second"}, false},
		{kv.ErrFailed, control.Borrowing{Network: "second", Remove: true}, false},
		{kv.ErrFull, control.Borrowing{Network: "second", Remove: true}, true},
	} {
		why.Store(&test.why)
		_, release, err := s.LendNetwork(t.Context(), test.what)
		if test.lent {
			if err != nil {
				t.Fatalf("%+v: %v", test, err)
			}
			if err := release(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, test.why) {
			t.Errorf("%+v: %v, want %v", test, err, test.why)
		}
		post(t, "http://"+s.Addr().String()+"/second/v3/"+key, blockNumber, http.StatusOK)
	}
}
