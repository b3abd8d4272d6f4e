package gateway_test

import (
	"bufio"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// random adds a method whose result has the given size, and shrinks little when it is compressed.
func random(n *gateway.Network, bytes int) {
	content := make([]byte, bytes/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // documented never to fail
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_random", func(_ context.Context, _, out []byte) ([]byte, error) {
		return fmt.Appendf(out, `"%x"`, content), nil
	}))
}

func TestSocketCompresses(t *testing.T) {
	n := network("alpha")
	random(&n, 300<<10)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	for _, method := range []string{"test_large", "test_random"} { // one frame, and several
		_, plain := s.post(call(method))
		for _, mode := range []websocket.CompressionMode{websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover} {
			c := s.dial(&websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
			c.conn.SetReadLimit(-1)
			for range 3 {
				if c.send(call(method)); c.receive() != plain {
					t.Errorf("%s: another answer than over HTTP", method)
				}
			}
		}
	}
}

// A ping is answered within a long compressed answer, between its frames.
func TestPingWithinALongCompressedAnswer(t *testing.T) {
	n := network("alpha")
	random(&n, mebibyte)
	plain := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	_, want := plain.post(call("test_random"))

	line, end := servePipe(t, gateway.Config{Networks: []gateway.Network{n}})
	defer end()
	conn, err := line.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	send("GET /ws/v3/" + goodKey + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n\r\n")
	r := bufio.NewReader(conn)
	if response, err := http.ReadResponse(r, nil); err != nil || response.StatusCode != 101 {
		t.Fatalf("%v %v", response, err)
	}
	send(frame(final|text, call("test_random")))
	var zipped strings.Builder
	var pongs, parts int
	for expected := byte(text | reserved); ; parts++ {
		if parts > 0 && pongs == 0 {
			time.Sleep(200 * time.Millisecond) // a client on a slow line, for which a pong can wait
		}
		first, payload, err := readFrame(r)
		if err != nil {
			t.Fatal(err)
		}
		if parts == 0 { // the next frame waits to be read
			send(frame(final|ping, "abc"))
		}
		if first == final|pong && payload == "abc" {
			pongs++
			continue
		}
		zipped.WriteString(payload)
		if first&^final != expected {
			t.Fatalf("part %d begins with %#x", parts, first)
		}
		if expected = more; first&final != 0 {
			break
		}
	}
	if pongs != 1 || parts < 8 {
		t.Errorf("%d pongs between %d parts", pongs, parts)
	}
	got, err := io.ReadAll(flate.NewReader(strings.NewReader(zipped.String() + "\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
	if err != nil || string(got) != want {
		t.Errorf("%d bytes that differ from the %d over HTTP, error %v", len(got), len(want), err)
	}
}
