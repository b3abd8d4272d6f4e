package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/await"
)

// A connection over HTTP/2 on which nothing arrives any more fails its requests, and the next ones use another.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var silent atomic.Bool // connections of before pass on nothing
	to := transport(50*time.Millisecond, 50*time.Millisecond)
	defer to.CloseIdleConnections()
	to.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	to.ForceAttemptHTTP2 = true
	to.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &lostConn{conn, &silent, !silent.Load()}, err
	}
	ask := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := to.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	if got, err := ask(); got != "HTTP/2.0" || err != nil {
		t.Fatalf("the first answer is %s, %v", got, err)
	}
	silent.Store(true)
	if got, err := ask(); err == nil && got != "HTTP/2.0" || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the answer on the silent connection is %s, %v", got, err)
	}
	if got, err := ask(); got != "HTTP/2.0" || err != nil {
		t.Errorf("the last answer is %s, %v", got, err)
	}
}

// lostConn is a connection that loses what is sent on it, once that is so for those of before.
type lostConn struct {
	net.Conn
	lost   *atomic.Bool
	before bool
}

func (c *lostConn) Write(b []byte) (int, error) {
	if c.before && c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}
