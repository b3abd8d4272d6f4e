package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

// anyKey accepts every key.
type anyKey struct{}

func (anyKey) Check(string) (*account.Key, bool) { return new(account.Key), true }

// halfFrame is the header of a text frame with a mask and 100 bytes of payload, and the
// first of them.
const halfFrame = "\x81\xe4\x00\x00\x00\x00{"

// question returns a frame that requests a long answer.
func question() string {
	const text = `{"jsonrpc":"2.0","id":1,"method":"test_long"}`
	return string([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}

// An incomplete message and an unread answer end their connection after the time limit, not
// before.
func TestSweepEndsWhatTakesTooLong(t *testing.T) {
	long := strings.Repeat("x", 32<<20) // more than all buffers on the way
	h, err := New(Config{Keys: anyKey{}, Log: slog.New(slog.DiscardHandler), Networks: []Network{{
		Name: "alpha", Methods: jsonrpctest.Methods(jsonrpc.Handlers{"test_long": func(_ context.Context, _, out []byte) ([]byte, error) {
			return fmt.Appendf(out, "%q", long), nil
		}}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	for _, test := range []struct {
		name, sent string
		watch      func(*socket) *stopwatch
		most       time.Duration
	}{
		{"a message that stops coming", halfFrame, func(s *socket) *stopwatch { return &s.receiving }, bodyTime},
		{"an answer that is not read", question(), func(s *socket) *stopwatch { return &s.writing }, writeTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET /ws/v3/key HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			in := bufio.NewReader(conn)
			if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatal(response, err)
			}
			fmt.Fprint(conn, test.sent)
			began := underWay(t, h.sockets, test.watch)
			h.sockets.sweep(began.Add(test.most))
			if h.sockets.count() != 1 {
				t.Fatal("the connection was ended within its time")
			}
			h.sockets.sweep(began.Add(test.most + time.Nanosecond))
			if _, err := io.Copy(io.Discard, in); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Fatal(err)
			}
			await.Until(t, "the connection to end", func() bool { return h.sockets.count() == 0 })
		})
	}
}

// underWay waits until the watched operation of the only connection has started.
func underWay(t *testing.T, open *sockets, watch func(*socket) *stopwatch) time.Time {
	t.Helper()
	var began int64
	await.Until(t, "an operation to start", func() bool {
		open.mu.Lock()
		defer open.mu.Unlock()
		for s := range open.open {
			began = watch(s).began.Load()
		}
		return began != 0
	})
	return time.Unix(0, began)
}

// A stream that was stopped before it began makes no message.
func TestNoStepsOfAStoppedStream(t *testing.T) {
	h := alone(t, nil)
	made := 0
	s := newSocket(h, httptest.NewRequest(http.MethodGet, "/", nil), "alpha", route{}, holder{}, nil)
	run := &steps{socket: s, step: func(_ context.Context, _ string, out []byte) ([]byte, error) {
		made++
		return out, nil
	}}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for range 100 {
		if err := run.run(stopped, ""); err != nil {
			t.Fatal(err)
		}
	}
	if made > 0 {
		t.Errorf("%d messages are made of 100 streams", made)
	}
}
