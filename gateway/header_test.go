package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/await"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// An open WebSocket keeps of its handshake what is read again later, and not all fields, which can
// take hundreds of kilobytes.
func TestSocketsKeepFewFields(t *testing.T) {
	h, err := New(Config{
		Keys: anyKey{}, Origins: []string{AnyOrigin}, Log: slog.New(slog.DiscardHandler), Networks: []Network{{Name: "alpha", Methods: jsonrpctest.Methods(nil)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var handshake *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handshake = r
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	sent := http.Header{"Origin": {"https://a.test"}, "X-Forwarded-For": {"192.0.2.1", "192.0.2.2"}, "Cookie": {"a=b"}}
	for i := range 100 {
		sent.Set(fmt.Sprintf("X-%d", i), "")
	}
	sent.Set("Authorization", "Basic eDp5")
	conn, _, err := websocket.Dial(t.Context(), server.URL+"/ws/v3/key", &websocket.DialOptions{HTTPHeader: sent})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	await.Until(t, "the connection to be open", func() bool { return h.sockets.count() == 1 })
	kept := handshake.Header
	if got := slices.Sorted(maps.Keys(kept)); !slices.Equal(got, keptFields) {
		t.Errorf("the connection keeps the fields %q, expected %q", got, keptFields)
	}
	for _, name := range keptFields {
		if !slices.Equal(kept[name], sent[name]) {
			t.Errorf("%s: %q, expected %q", name, kept[name], sent[name])
		}
	}
}

// A header is bounded, because nothing counts its memory.
func TestHeadersAreBounded(t *testing.T) {
	server, err := Listen(t.Context(), ListenConfig{Address: "127.0.0.1:0"}, alone(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for bytes, want := range map[int]int{15 << 10: 200, 21 << 10: 431} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+server.Addr().String()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("x", bytes))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("a header of %d bytes: %d, expected %d", bytes, response.StatusCode, want)
		}
	}
}
