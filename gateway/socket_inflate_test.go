package gateway_test

import (
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

const agreeing = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"

// ended returns text as a stream that ends with a final block.
func ended(t *testing.T, level int, text string) string {
	t.Helper()
	var b strings.Builder
	z, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A compressed message may have any number of blocks, final ones too, in any number of frames (RFC 7692,
// section 7.2.3). What follows it is read as the next message.
func TestCompressedMessages(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	request := call("test_name")
	begin, rest := request[:20], request[20:]
	const fast, stored = flate.BestSpeed, flate.NoCompression
	const tail = "\x00\x00\xff\xff"
	for name, send := range map[string]string{
		"a final block":                         frame(final|reserved|text, ended(t, fast, request)+"\x00"),
		"a final block and nothing":             frame(final|reserved|text, ended(t, fast, request)),
		"two final blocks":                      frame(final|reserved|text, ended(t, fast, begin)+ended(t, fast, rest)+"\x00"),
		"a final block in the middle":           frame(final|reserved|text, ended(t, fast, begin)+deflated(t, rest)),
		"a final block at the end":              frame(final|reserved|text, deflated(t, begin)+tail+ended(t, fast, rest)),
		"two blocks":                            frame(final|reserved|text, deflated(t, begin)+tail+deflated(t, rest)),
		"a final block, the rest in a fragment": frame(reserved|text, ended(t, fast, request)) + frame(final|more, "\x00"),
		"a final block, an empty fragment":      frame(reserved|text, ended(t, fast, request)+"\x00") + frame(final|more, ""),
		"a final block, a ping":                 frame(reserved|text, ended(t, fast, request)) + frame(final|ping, "x") + frame(final|more, "\x00"),
		"a final block at the end of a buffer":  frame(final|reserved|text, ended(t, stored, request+strings.Repeat(" ", 4<<10-len(request)-10))+"\x00"),
		"a final block longer than a buffer":    frame(final|reserved|text, ended(t, stored, request+strings.Repeat(" ", 100_000))+"\x00"),
		"an end that was not left out":          frame(final|reserved|text, deflated(t, request)+tail),
		"empty fragments first":                 frame(reserved|text, "") + frame(more, "") + frame(final|ping, "x") + frame(final|more, deflated(t, request)),
		"not compressed, though it may be":      frame(final|text, request),
		"byte by byte":                          frame(reserved|text, "") + inFragments(deflated(t, request)) + frame(final|more, ""),
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := handshake(t, s, agreeing)
			if _, err := io.WriteString(conn, send+frame(final|text, request)); err != nil {
				t.Fatal(err)
			}
			for answers := 0; answers < 2; {
				first, payload, err := readFrame(r)
				if err != nil || first != final|pong && (first != final|text || !strings.Contains(payload, "alpha")) {
					t.Fatalf("after %d answers: %#x %q, %v", answers, first, payload, err)
				}
				if first == final|text {
					answers++
				}
			}
		})
	}
}

// inFragments returns a frame for each byte.
func inFragments(payload string) (frames string) {
	for i := range len(payload) {
		frames += frame(more, payload[i:i+1])
	}
	return frames
}

// Any way of sending a message is answered as the message sent plainly: in streams, blocks and frames,
// with pings between these, and other messages before and behind.
func TestRandomCompressedMessages(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 0))
			conn, r := handshake(t, s, agreeing)
			const messages = 50
			var all strings.Builder
			for range messages {
				request := call("test_name") + strings.Repeat(" ", dice.IntN(5)*dice.IntN(5000))
				payload, first := request, byte(text)
				if dice.IntN(4) > 0 {
					payload, first = randomStreams(t, dice, request), text|reserved
				}
				for payload != "" && dice.IntN(3) > 0 {
					n := dice.IntN(len(payload) + 1)
					all.WriteString(frame(first, payload[:n]))
					payload, first = payload[n:], more
					if dice.IntN(3) == 0 {
						all.WriteString(frame(final|ping, "x"))
					}
				}
				all.WriteString(frame(first|final, payload))
			}
			go func() { _, _ = io.WriteString(conn, all.String()) }() // fails if an answer is wrong
			for answers := 0; answers < messages; {
				first, payload, err := readFrame(r)
				if err != nil || first != final|pong && (first != final|text || !strings.Contains(payload, "alpha")) {
					t.Fatalf("after %d answers: %#x %q, %v", answers, first, payload, err)
				}
				if first == final|text {
					answers++
				}
			}
		})
	}
}

// randomStreams returns text as a compressed message of several streams and blocks.
func randomStreams(t *testing.T, dice *rand.Rand, text string) (message string) {
	t.Helper()
	for {
		n := dice.IntN(len(text) + 1)
		level := dice.IntN(10)
		if dice.IntN(4) == 0 {
			n = len(text)
		}
		part := text[:n]
		text = text[n:]
		if dice.IntN(2) == 0 {
			message += ended(t, level, part)
			if text == "" {
				return message + strings.Repeat("\x00", dice.IntN(2))
			}
			continue
		}
		message += deflated(t, part)
		if text == "" {
			return message
		}
		message += "\x00\x00\xff\xff"
	}
}

// A compressed message with invalid blocks closes its connection.
func TestBrokenCompressedMessages(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	whole := ended(t, flate.BestSpeed, call("test_name"))
	for name, payload := range map[string]string{
		"an unknown block":    "\x07",
		"something behind":    whole + "\x07",
		"lengths that differ": "\x00\x05\x00\x05\x00hello",
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := handshake(t, s, agreeing)
			if _, err := io.WriteString(conn, frame(final|reserved|text, payload)); err != nil {
				t.Fatal(err)
			}
			first, payload, err := readFrame(r)
			if err != nil || first != final|closing || !strings.HasPrefix(payload, closePayload(1002, "")) {
				t.Errorf("answered %#x %q, %v; expected a close frame with 1002", first, payload, err)
			}
		})
	}
}

// The mark of compressed messages is refused where it is invalid.
func TestMarksOfCompressedMessages(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	whole := deflated(t, call("test_name"))
	for name, test := range map[string]struct{ headers, send string }{
		"not agreed on":      {"", frame(final|reserved|text, whole)},
		"of a later frame":   {agreeing, frame(reserved|text, whole[:5]) + frame(final|reserved|more, whole[5:])},
		"of a control frame": {agreeing, frame(final|reserved|ping, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := handshake(t, s, test.headers)
			if _, err := io.WriteString(conn, test.send); err != nil {
				t.Fatal(err)
			}
			first, payload, err := readFrame(r)
			if err != nil || first != final|closing || !strings.HasPrefix(payload, closePayload(1002, "")) {
				t.Errorf("answered %#x %q, %v; expected a close frame with 1002", first, payload, err)
			}
		})
	}
}

// An unfinished message takes the memory of what was sent of it, not of what that stands for.
func TestMemoryOfUnfinishedCompressedMessages(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	bomb := deflated(t, strings.Repeat(" ", mebibyte))
	conn, r := handshake(t, s, agreeing)
	if _, err := io.WriteString(conn, frame(reserved|text, bomb)+frame(final|ping, "")); err != nil {
		t.Fatal(err)
	}
	if first, _, err := readFrame(r); err != nil || first != final|pong { // the fragment has been read
		t.Fatalf("answered %#x, %v", first, err)
	}
	if held := s.handler.Stats().HeldBytes; held > 16<<10 {
		t.Errorf("%d bytes are held for a fragment of %d", held, len(bomb))
	}
	if _, err := io.WriteString(conn, frame(final|more, "\x00\x00\xff\xff"+deflated(t, call("test_name")))); err != nil {
		t.Fatal(err)
	}
	if _, payload, err := readFrame(r); err != nil || !strings.Contains(payload, "alpha") {
		t.Errorf("answered %q, %v", payload, err)
	}
	await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 })
}

// A compressed message that waits for a slot of heavy calls delays no other of its connection. If it gets none
// in time, it is refused, and the connection goes on.
func TestCompressedMessageWithoutSlot(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	n := held(begun, release)
	heavy := *n.Methods.Find("test_held")
	heavy.Cost = jsonrpc.Heavy(1)
	n.Methods = jsonrpctest.With(n.Methods, heavy)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Heavy: 1, RequestTime: time.Second}}, 0)
	busy := s.dial(nil)
	busy.send(call("test_held"))
	<-begun
	defer close(release)
	c := s.dial(&websocket.DialOptions{CompressionMode: websocket.CompressionNoContextTakeover})
	c.send(call("test_name")+strings.Repeat(" ", 100<<10), call("test_name"))
	if got := c.receive(); !strings.Contains(got, "alpha") {
		t.Errorf("the short one waits for the long one: %s", got)
	}
	if got := c.receive(); !strings.Contains(got, `"id":1,"error":{"code":-32005,`) {
		t.Errorf("got %s", got)
	}
	c.send(call("test_name"))
	if got := c.receive(); !strings.Contains(got, "alpha") {
		t.Errorf("after the refusal: %s", got)
	}
}
