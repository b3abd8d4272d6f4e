package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/internal/pipes"
	"ashlar/jsonrpc"

	"golang.org/x/net/http2"
)

// TestStalledHTTP2: a connection over HTTP/2 whose client allows long answers, and then reads nothing
// more of the connection, is closed after the time for a client to read an answer. The write
// deadlines of its requests do not end it: resetting a request is a frame of the same connection.
func TestStalledHTTP2(t *testing.T) {
	certificates := testCertificates()
	synctest.Test(t, func(t *testing.T) { testStalledHTTP2(t, certificates) })
}

func testStalledHTTP2(t *testing.T, certificates []tls.Certificate) {
	const requests = 3
	long := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 1<<20)...), '"')
	h := alone(t, jsonrpc.Handlers{"test_long": func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, long...), nil }})
	listener := pipes.Listen()
	server, err := Listen(t.Context(), ListenConfig{Listener: listener, TLS: &tls.Config{Certificates: certificates}}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	dialed, err := listener.DialContext(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(dialed, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	c := &clientHTTP2{t: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	begun := make(chan struct{})
	go func() { // reads until an answer has begun, and no more
		defer close(begun)
		c.read(1)
	}()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 24}); err != nil {
		t.Fatal(err)
	}
	if err := c.framer.WriteWindowUpdate(0, 1<<24); err != nil {
		t.Fatal(err)
	}
	for range requests {
		c.ask("/v3/key", `{"jsonrpc":"2.0","id":1,"method":"test_long"}`)
	}
	<-begun
	synctest.Wait()
	if held := h.memory.Held(); held < requests*int64(len(long)) {
		t.Errorf("%d bytes are held, expected those of %d answers", held, requests)
	}
	time.Sleep(writeTime + 10*time.Second) // of which TLS takes 5 to say that it closes the connection
	synctest.Wait()
	if open, _ := server.Connections(); open != 0 || h.memory.Held() != 0 {
		t.Errorf("%d connections are open with %d bytes of answers %v after the client has stopped reading, expected none", open, h.memory.Held(), writeTime)
	}
	_ = conn.NetConn().Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
