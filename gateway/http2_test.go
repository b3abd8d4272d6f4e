package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http/httptest"
	"slices"
	"testing"

	"ashlar/internal/await"
	"ashlar/jsonrpc"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// clientHTTP2 is a client that takes the bodies of its answers only when it is told to.
type clientHTTP2 struct {
	t      *testing.T
	conn   *tls.Conn
	framer *http2.Framer
	next   uint32 // ID of the next request
}

// dialHTTP2 opens a connection whose window for the bodies of answers is empty.
func dialHTTP2(t *testing.T, address string) *clientHTTP2 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &clientHTTP2{t: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return c
}

// get sends a request.
func (c *clientHTTP2) get(path string) { c.begin("GET", path, true) }

// begin sends the head of a request, which is all of it at its end, with further fields.
func (c *clientHTTP2) begin(method, path string, end bool, fields ...string) {
	c.t.Helper()
	var block bytes.Buffer
	h := hpack.NewEncoder(&block)
	fields = append([]string{":method", method, ":scheme", "https", ":authority", "a.test", ":path", path}, fields...)
	for f := range slices.Chunk(fields, 2) {
		if err := h.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			c.t.Fatal(err)
		}
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true})
	if err != nil {
		c.t.Fatal(err)
	}
	c.next += 2
}

// read reads until so many requests were begun to be answered, or refused.
func (c *clientHTTP2) read(most int) (begun, refused int) {
	c.t.Helper()
	for begun+refused < most {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		switch frame.(type) {
		case *http2.HeadersFrame:
			begun++
		case *http2.RSTStreamFrame:
			refused++
		}
	}
	return begun, refused
}

// ask sends a call.
func (c *clientHTTP2) ask(path, body string) {
	c.t.Helper()
	stream := c.next
	c.begin("POST", path, false, "content-type", "application/json")
	if err := c.framer.WriteData(stream, true, []byte(body)); err != nil {
		c.t.Fatal(err)
	}
}

// testCertificates returns the certificate of a server that only tests know.
func testCertificates() []tls.Certificate {
	inside := httptest.NewUnstartedServer(nil)
	inside.StartTLS()
	defer inside.Close()
	return inside.TLS.Certificates
}

// overHTTP2 runs a server with TLS that has no methods.
func overHTTP2(t *testing.T, connections int) *Server {
	t.Helper()
	h := alone(t, jsonrpc.Handlers{})
	server, err := Listen(t.Context(), ListenConfig{
		Address: "127.0.0.1:0", ConnectionsEach: connections, TLS: &tls.Config{Certificates: testCertificates()},
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server
}

// Requests over HTTP/2 count as connections, until the client has taken their answers: one
// connection can have hundreds of them at once.
func TestRequestsOverHTTP2AreCounted(t *testing.T) {
	const most, asked = 20, 100
	server := overHTTP2(t, most)
	c := dialHTTP2(t, server.Addr().String())
	for range asked {
		c.get("/healthz")
	}
	if begun, refused := c.read(asked); begun != most-1 || refused != asked-begun {
		t.Errorf("%d requests are answered and %d refused, expected %d and %d", begun, refused, most-1, asked-most+1)
	}
	open, dropped := server.Connections()
	if open != 1 || dropped != asked-most+1 {
		t.Errorf("%d connections are open and %d were dropped, expected 1 and %d", open, dropped, asked-most+1)
	}
	c.take() // the bodies
	await.Until(t, "the requests to leave", func() bool {
		server.listener.mu.Lock()
		defer server.listener.mu.Unlock()
		return server.listener.open == 1 && server.listener.requests.Load() == 0
	})
	c.get("/healthz")
	if begun, _ := c.read(1); begun != 1 {
		t.Error("a later request is refused")
	}
	c.take()
}

// take lets the server send the bodies of all answers.
func (c *clientHTTP2) take() {
	c.t.Helper()
	for id := uint32(1); id < c.next; id += 2 {
		if err := c.framer.WriteWindowUpdate(id, 1<<16); err != nil {
			c.t.Fatal(err)
		}
	}
}

// What a handler has not read of a body is dropped when the answer begins. Otherwise it would stay in
// memory, where nothing counts it, until the client takes the answer.
func TestBodiesOverHTTP2AreDropped(t *testing.T) {
	for _, request := range []struct{ method, path string }{{"GET", "/healthz"}, {"POST", "/v3/unknown"}, {"GET", "/v3/unknown"}} {
		t.Run(request.method+request.path, func(t *testing.T) {
			c := dialHTTP2(t, overHTTP2(t, 0).Addr().String())
			c.begin(request.method, request.path, false)
			if request.method == "POST" { // its beginning is read, for the ID of the call
				c.body(1, 1<<12)
			}
			c.read(1)
			const bytes = 1 << 16
			c.body(1, bytes)
			if dropped := c.allowed(); dropped < bytes {
				t.Errorf("%d bytes of the body were dropped, expected %d", dropped, bytes)
			}
		})
	}
}

// body sends bytes of the body of a request.
func (c *clientHTTP2) body(stream uint32, bytes int) {
	c.t.Helper()
	for ; bytes > 0; bytes -= 1 << 12 {
		if err := c.framer.WriteData(stream, false, make([]byte, 1<<12)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// allowed returns how many more bytes the server allows the connection to send, once it has seen all
// that was sent.
func (c *clientHTTP2) allowed() (bytes int) {
	c.t.Helper()
	if err := c.framer.WritePing(false, [8]byte{}); err != nil {
		c.t.Fatal(err)
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				bytes += int(frame.Increment)
			}
		case *http2.PingFrame:
			return bytes
		}
	}
}
