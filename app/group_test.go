package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/limit"
)

// board is a limit.Board in memory.
type board struct {
	posted chan struct{} // receives one for each post, as long as it has room

	mu    sync.Mutex
	posts map[string][]byte // guarded by mu
}

func (b *board) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts[name] = value
	select {
	case b.posted <- struct{}{}:
	default:
	}
	return nil
}

func (b *board) Posts(context.Context) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.posts), nil
}

// withGroup has a service share limits on a board.
func withGroup(t *testing.T, s *Service, c config.Config, b *board) {
	t.Helper()
	s.group = limit.NewGroup(b)
	g, err := s.gatewayConfig(c)
	if err == nil {
		err = s.handler.Reload(g)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLastRequestIsPosted stops a server while it reads a request. What the request costs is
// known to other processes afterwards.
func TestLastRequestIsPosted(t *testing.T) {
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.LameDuck, c.Limits.KeyRate = data, "127.0.0.1:0", 0, 1000
	b := &board{posted: make(chan struct{}, 100), posts: map[string][]byte{}}
	s, key, stop := runningWith(t, c, func(s *Service) { withGroup(t, s, c, b) })
	conn, err := net.Dial("tcp", s.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, len(blockNumber))
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q %v, expected to continue", line, err)
	}
	if _, err := answer.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for len(b.posted) > 0 {
		<-b.posted
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	for range 3 { // a group that ends posts three times
		<-b.posted
	}
	fmt.Fprint(conn, blockNumber)
	if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the last request: %+v, %v", response, err)
	}
	<-stopped
	spent := 0.0
	for _, value := range b.posts {
		var post struct{ Entries map[string][]float64 }
		if err := json.Unmarshal(value, &post); err != nil {
			t.Fatal(err)
		}
		for _, entry := range post.Entries {
			spent = max(spent, entry[1])
		}
	}
	if spent == 0 {
		t.Error("what the last request cost is not posted")
	}
}

// TestSpentWhileOpening: what others spend while a server opens its networks, or waits for their
// leases, is known when it listens.
func TestSpentWhileOpening(t *testing.T) {
	data, ctx := t.TempDir(), t.Context()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.Limits.KeyDaily = data, "127.0.0.1:0", 1000
	s, err := Open(ctx, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Stop(ctx), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	b := &board{posts: map[string][]byte{}}
	withGroup(t, s, c, b)
	issued, err := s.keys.Create(ctx, account.NewKey{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().Unix() / (24 * 60 * 60)
	for _, day := range []int64{today, today + 1} { // midnight may pass
		b.posts[fmt.Sprint("other", day)] = fmt.Appendf(nil, `{"seq": 1, "entries": {"key %s": [0, 0, 0, %d, 700, 0]}}`, issued.Key.ID, day)
	}
	if err := s.restoreSpent(ctx); err != nil {
		t.Fatal(err)
	}
	if a := s.handler.Allowance(&issued.Key); len(a.PerDay) != 1 || a.PerDay[0].Used != 700 {
		t.Errorf("the key's quota is %+v, expected 700 credits used", a.PerDay)
	}
}
