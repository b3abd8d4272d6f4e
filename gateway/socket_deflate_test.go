package gateway_test

import (
	"bufio"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/internal/pipes"
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

// deflating opens a WebSocket whose messages may be compressed, on a bare connection.
func deflating(t *testing.T, line *pipes.Listener) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := line.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "GET /ws/v3/"+goodKey+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if response, err := http.ReadResponse(r, nil); err != nil || response.StatusCode != 101 {
		t.Fatalf("%v %v", response, err)
	}
	return conn, r
}

// inflated returns the text of a compressed message.
func inflated(message string) (string, error) {
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(message + "\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
	return string(text), err
}

// A ping is answered within a long compressed answer, between its frames.
func TestPingWithinALongCompressedAnswer(t *testing.T) {
	n := network("alpha")
	random(&n, mebibyte)
	plain := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	_, want := plain.post(call("test_random"))

	line, end := servePipe(t, gateway.Config{Networks: []gateway.Network{n}})
	defer end()
	conn, r := deflating(t, line)
	defer conn.Close()
	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
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
	if got, err := inflated(zipped.String()); err != nil || got != want {
		t.Errorf("%d bytes that differ from the %d over HTTP, error %v", len(got), len(want), err)
	}
}

// What compresses a message is counted until the client has read it. A message for which there is
// only memory without that is sent as it is.
func TestMemoryOfCompressedMessages(t *testing.T) {
	for _, c := range []struct {
		name       string
		size       int
		memory     int64 // of which one key gets half
		compressed bool
		counted    int64 // with the answer
	}{
		{"one frame", 32 << 10, mebibyte, true, 64 << 10},
		{"one frame, little memory", 32 << 10, 100 << 10, false, 32 << 10},
		{"several frames", 300 << 10, 16 * mebibyte, true, 300<<10 + 840<<10},
		{"several frames, little memory", 300 << 10, 2 * mebibyte, false, 300 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network("alpha")
			random(&n, c.size)
			handler, line, stop := startPipe(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: c.memory, BodyBytes: 10_000}})
			conn, r := deflating(t, line)
			if _, err := io.WriteString(conn, frame(final|text, call("test_random"))); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Peek(1); err != nil { // the rest waits to be read
				t.Fatal(err)
			}
			if held := handler.Stats().HeldBytes; held < c.counted || !c.compressed && held > c.memory/2 {
				t.Errorf("%d bytes are counted, expected at least %d", held, c.counted)
			}
			answer, compressed := message(t, r)
			if compressed {
				var err error
				if answer, err = inflated(answer); err != nil {
					t.Error(err)
				}
			}
			if compressed != c.compressed || len(answer) < c.size || !strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":1,"result":"`) || !strings.HasSuffix(answer, `"}`) {
				t.Errorf("compressed: %t, expected %t; %d bytes, %.100q", compressed, c.compressed, len(answer), answer)
			}
			await.Until(t, "memory to be released", func() bool { return handler.Stats().HeldBytes == 0 })
			conn.Close()
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// message reads the frames of a message.
func message(t *testing.T, r io.Reader) (payload string, compressed bool) {
	t.Helper()
	var all strings.Builder
	for {
		first, part, err := readFrame(r)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(part)
		compressed = compressed || first&reserved != 0
		if first&final != 0 {
			return all.String(), compressed
		}
	}
}
