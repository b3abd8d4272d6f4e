package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/gateway"
	"ashlar/internal/pipes"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// servePipe serves connections in memory. end stops that.
func servePipe(t *testing.T, config gateway.Config) (line *pipes.Listener, end func()) {
	t.Helper()
	_, line, stop := startPipe(t, config)
	return line, func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// startPipe serves connections in memory. stop stops that, and returns Run's result.
func startPipe(t *testing.T, config gateway.Config) (handler *gateway.Handler, line *pipes.Listener, stop func() error) {
	t.Helper()
	config.Keys, config.Log = oneKey{}, slog.New(slog.DiscardHandler)
	handler, err := gateway.New(config)
	if err != nil {
		t.Fatal(err)
	}
	line = pipes.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	server, err := gateway.Listen(ctx, gateway.ListenConfig{Listener: line}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	return handler, line, func() error {
		cancel()
		return <-ended
	}
}

// dialPipe opens a WebSocket over a pipe, within a bubble of synctest. What is written waits
// until the other end reads it, and time passes only while everything waits. end ends both.
func dialPipe(t *testing.T, config gateway.Config, compression websocket.CompressionMode) (c *socket, end func()) {
	t.Helper()
	line, stop := servePipe(t, config)
	c = dialLine(t, line, compression)
	return c, func() {
		_ = c.conn.CloseNow()
		stop()
	}
}

// dialLine opens a WebSocket on a server of startPipe.
func dialLine(t *testing.T, line *pipes.Listener, compression websocket.CompressionMode) *socket {
	t.Helper()
	return dialLineWith(t, line, &websocket.DialOptions{CompressionMode: compression})
}

// dialLineWith is dialLine with options, in which it sets the client.
func dialLineWith(t *testing.T, line *pipes.Listener, options *websocket.DialOptions) *socket {
	t.Helper()
	options.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: line.DialContext}}
	conn, _, err := websocket.Dial(t.Context(), "ws://pipe/ws/v3/"+goodKey, options)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	return &socket{t, conn}
}

// A ping is answered while a long answer is sent to a client on a slow line.
func TestPingWhileALongAnswerIsWritten(t *testing.T) {
	synctest.Test(t, testPingWhileALongAnswerIsWritten)
}

func testPingWhileALongAnswerIsWritten(t *testing.T) {
	const size = 4 * mebibyte
	n := network("alpha")
	large(&n, size)
	c, end := dialPipe(t, gateway.Config{Networks: []gateway.Network{n}}, websocket.CompressionDisabled)
	defer end()
	c.send(call("test_huge"))
	synctest.Wait() // until the answer waits to be read
	ponged := make(chan error, 1)
	go func() { ponged <- c.conn.Ping(t.Context()) }()
	_, answer, err := c.conn.Reader(t.Context())
	length, buf := 0, make([]byte, 64<<10)
	for err == nil { // 64 KiB a second
		var n int
		n, err = io.ReadFull(answer, buf)
		length += n
		time.Sleep(time.Second)
	}
	if length < size || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes of the answer, error %v", length, err)
	}
	select {
	case err = <-ponged:
	default:
		err = errors.New("none while the answer arrived")
	}
	if err != nil {
		t.Errorf("pong: %v", err)
	}
}

// A client that takes longer over a message than a ping may stay unanswered is not gone: the
// ping waits behind the message.
func TestPingWaitsForAMessageThatIsWritten(t *testing.T) {
	for _, compression := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionNoContextTakeover} {
		synctest.Test(t, func(t *testing.T) { testPingWaitsForAMessageThatIsWritten(t, compression) })
	}
}

func testPingWaitsForAMessageThatIsWritten(t *testing.T, compression websocket.CompressionMode) {
	long := make([]byte, mebibyte)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range long {
		long[i] = "0123456789abcdef"[random.IntN(16)] // still long when it is compressed
	}
	sent := false
	c, end := dialPipe(t, gateway.Config{
		Networks: []gateway.Network{stepping(func(_ context.Context, _ string, out []byte) ([]byte, error) {
			if sent {
				return out, io.EOF
			}
			sent = true
			return append(out, long...), nil
		})},
		Sockets: gateway.SocketLimits{Ping: 100 * time.Millisecond},
	}, compression)
	defer end()
	c.subscribed()
	time.Sleep(7 * time.Second) // many sweeps; the library ends what it does not write in 5 seconds
	if message := c.receive(); len(message) != len(long) {
		t.Errorf("message of %d bytes", len(message))
	}
	c.send(call("test_name"))
	if answer := c.receive(); answer != `{"jsonrpc":"2.0","id":1,"result":"alpha"}` {
		t.Errorf("got %s", answer)
	}
}

// A client is not gone because a compressed message of it waits for a slot of heavy calls.
func TestPingWhileAMessageWaitsForASlot(t *testing.T) {
	synctest.Test(t, testPingWhileAMessageWaitsForASlot)
}

func testPingWhileAMessageWaitsForASlot(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	n := held(begun, release)
	heavy := *n.Methods.Find("test_held")
	heavy.Cost = jsonrpc.Heavy(1)
	n.Methods = jsonrpctest.With(n.Methods, heavy)
	_, line, stop := startPipe(t, gateway.Config{
		Networks: []gateway.Network{n}, Limits: gateway.Limits{Heavy: 1}, Sockets: gateway.SocketLimits{Ping: 1500 * time.Millisecond},
	})
	defer func() { _ = stop() }() // its connections have ended
	busy := dialLine(t, line, websocket.CompressionDisabled)
	defer busy.conn.CloseNow()
	busy.send(call("test_held"))
	<-begun
	c := dialLine(t, line, websocket.CompressionNoContextTakeover)
	defer c.conn.CloseNow()
	answer := make(chan string, 1)
	go func() {
		_, message, err := c.conn.Read(t.Context()) // answers pings
		answer <- fmt.Sprint(string(message), err)
	}()
	c.send(call("test_name") + strings.Repeat(" ", 100<<10))
	time.Sleep(4 * time.Second) // longer than a ping may stay unanswered; a second one is sent meanwhile
	close(release)
	if got := <-answer; got != `{"jsonrpc":"2.0","id":1,"result":"alpha"}<nil>` {
		t.Errorf("got %s", got)
	}
}
