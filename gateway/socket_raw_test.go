package gateway_test

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ashlar/gateway"
)

// frame returns a client's WebSocket frame with a zero mask, which leaves the payload
// unchanged.
func frame(first byte, payload string) string {
	switch n := len(payload); {
	case n < 126:
		return string([]byte{first, 0x80 | byte(n), 0, 0, 0, 0}) + payload
	case n < 1<<16:
		return string([]byte{first, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}) + payload
	default:
		head := binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(n))
		return string(append(head, 0, 0, 0, 0)) + payload
	}
}

const (
	final    = 0x80
	reserved = 0x40
	more     = 0x0
	text     = 0x1
	closing  = 0x8
	ping     = 0x9
	pong     = 0xa
)

// handshake opens a WebSocket on a bare connection.
func handshake(t testing.TB, s *running, headers string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /ws/v3/%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", goodKey, headers)
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != 101 {
		t.Fatalf("%v %v", response, err)
	}
	return conn, r
}

// readFrame reads one of the server's frames.
func readFrame(r io.Reader) (first byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, "", err
	}
	n := int(head[1])
	if n >= 126 {
		long := make([]byte, 8)
		size := 2
		if n == 127 {
			size = 8
		}
		if _, err := io.ReadFull(r, long[8-size:]); err != nil {
			return 0, "", err
		}
		n = int(binary.BigEndian.Uint64(long))
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return head[0], string(body), err
}

func closePayload(code uint16, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, code)) + reason
}

// Frames that violate the protocol close only their own connection, with the right code.
func TestBrokenFrames(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{BodyBytes: 1000}}, 0)
	healthy := s.dial(nil)
	const protocolError, tooBig = 1002, 1009
	for name, c := range map[string]struct {
		send string
		code uint16
	}{
		"not masked":                  {string([]byte{final | text, 2}) + "{}", protocolError},
		"unknown opcode":              {frame(final|0x3, "{}"), protocolError},
		"reserved bit":                {frame(final|reserved|text, "{}"), protocolError},
		"continuation of nothing":     {frame(final|more, "{}"), protocolError},
		"message within a message":    {frame(text, "{") + frame(final|text, "}"), protocolError},
		"long control frame":          {frame(final|ping, strings.Repeat("x", 126)), protocolError},
		"control frame in parts":      {frame(ping, "x"), protocolError},
		"close code that is none":     {frame(final|closing, closePayload(1006, "")), protocolError},
		"close frame of one byte":     {frame(final|closing, "x"), protocolError},
		"length beyond all":           {string([]byte{final | text, 0x80 | 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) + strings.Repeat(" ", 2000), tooBig},
		"too large in many fragments": {strings.Repeat(frame(text, strings.Repeat(" ", 400)), 1) + strings.Repeat(frame(more, strings.Repeat(" ", 400)), 3), tooBig},
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := handshake(t, s, "")
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			first, payload, err := readFrame(r)
			if err != nil || first != final|closing || len(payload) < 2 || binary.BigEndian.Uint16([]byte(payload)) != c.code {
				t.Errorf("answered %#x %q, %v; expected a close frame with %d", first, payload, err, c.code)
			}
		})
	}
	if healthy.send(call("test_name")); !strings.Contains(healthy.receive(), "alpha") {
		t.Error("another connection suffers")
	}
}

// Unusual but valid frames are answered.
func TestUnusualFrames(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	request := call("test_name")
	for name, send := range map[string]string{
		"byte by byte":           fragments(request),
		"a ping in between":      frame(text, request[:5]) + frame(final|ping, "p") + frame(final|more, request[5:]),
		"binary":                 frame(final|0x2, request),
		"length not the least":   string([]byte{final | text, 0x80 | 126, 0, byte(len(request)), 0, 0, 0, 0}) + request,
		"an empty last fragment": frame(text, request) + frame(final|more, ""),
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := handshake(t, s, "")
			if _, err := io.WriteString(conn, send); err != nil {
				t.Fatal(err)
			}
			for {
				first, payload, err := readFrame(r)
				if err != nil {
					t.Fatal(err)
				}
				if first == final|text {
					if !strings.Contains(payload, "alpha") {
						t.Errorf("answered %s", payload)
					}
					return
				}
			}
		})
	}
}

func fragments(message string) string {
	var b strings.Builder
	b.WriteString(frame(text, message[:1]))
	for _, c := range []byte(message[1:]) {
		b.WriteString(frame(more, string(c)))
	}
	return b.String() + frame(final|more, "")
}

// A compressed message that decompresses to more than the limit is a bomb.
func TestCompressedBomb(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{BodyBytes: 1000}}, 0)
	conn, r := handshake(t, s, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
	if _, err := io.WriteString(conn, frame(final|reserved|text, deflated(t, strings.Repeat(" ", 10_000_000)))); err != nil {
		t.Fatal(err)
	}
	if first, payload, err := readFrame(r); err != nil || first != final|closing || !strings.HasPrefix(payload, closePayload(1009, "")) {
		t.Errorf("answered %#x %q, %v", first, payload, err)
	}
}

// The limit of a message holds for the bytes in which it is sent, too. Frames and blocks of
// compressed text can be empty.
func TestMessagesOfNothing(t *testing.T) {
	const most = 1000
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{BodyBytes: most}}, 0)
	const emptyBlock = "\x00\x00\x00\xff\xff"
	for name, send := range map[string]func(empty int) string{
		"blocks": func(empty int) string {
			return frame(reserved|text, strings.Repeat(emptyBlock, empty)) + frame(final|more, deflated(t, call("test_name")))
		},
		"frames": func(empty int) string {
			return frame(text, "") + strings.Repeat(frame(more, ""), empty) + frame(final|more, call("test_name"))
		},
	} {
		for empty, refused := range map[int]bool{10: false, 10 * most: true} {
			conn, r := handshake(t, s, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
			go func() { _, _ = io.WriteString(conn, send(empty)) }() // fails if it is refused early
			first, payload, err := readFrame(r)
			if err != nil || refused && !strings.HasPrefix(payload, closePayload(1009, "")) || !refused && !strings.Contains(payload, "alpha") {
				t.Errorf("%d empty %s: answered %#x %q, %v", empty, name, first, payload, err)
			}
		}
	}
}

// deflated returns text as a message of permessage-deflate.
func deflated(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	z, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}
