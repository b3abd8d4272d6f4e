package http1

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// halfPipe is the server's end of a pipe, which pretends that it can be closed by half.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// TestLinger tests for how long a client that was refused can go on sending its body: as long as
// it sends something within half a second, and five seconds in all.
func TestLinger(t *testing.T) {
	for _, c := range []struct{ every, want time.Duration }{
		{400 * time.Millisecond, 5200 * time.Millisecond}, // the first multiple after five seconds
		{600 * time.Millisecond, 600 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, outer := net.Pipe()
			server := New(Config{
				Handler: answering(), Accepts: func(string) bool { return true }, Log: slog.New(slog.DiscardHandler),
				Context:  func(net.Conn) context.Context { return t.Context() },
				HeadTime: time.Minute, BodyTime: time.Minute, WriteTime: time.Minute,
			})
			go newConn(server, halfPipe{inner}).serve()
			head, _, _ := strings.Cut(request("/refuse", strings.Repeat("x", 1<<20)), "x")
			go func() { _, _ = io.WriteString(outer, head) }()
			if response, err := http.ReadResponse(bufio.NewReader(outer), nil); err != nil || response.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("%+v, %v", response, err)
			}
			answered := time.Now()
			for err := error(nil); err == nil; _, err = io.WriteString(outer, "x") {
				time.Sleep(c.every)
			}
			if lasted := time.Since(answered); lasted != c.want {
				t.Errorf("the client can send for %v if it does every %v, expected %v", lasted, c.every, c.want)
			}
		})
	}
}
