package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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

// TestLastRequestIsPosted stops a server while it reads a request. What the request costs is
// known to other processes afterwards.
func TestLastRequestIsPosted(t *testing.T) {
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.LameDuck, c.Limits.KeyRate = data, "127.0.0.1:0", 0, 1000
	b := &board{posted: make(chan struct{}, 100), posts: map[string][]byte{}}
	s, key, stop := runningWith(t, c, func(s *Service) {
		s.group = limit.NewGroup(b)
		g, err := s.gatewayConfig(c)
		if err == nil {
			err = s.handler.Reload(g)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
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
