package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/gateway"

	"github.com/coder/websocket"
)

// pipes is a listener of connections in memory, which have no buffers.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// A ping is answered while a long answer is sent to a client on a slow line.
func TestPingWhileALongAnswerIsWritten(t *testing.T) {
	synctest.Test(t, testPingWhileALongAnswerIsWritten)
}

func testPingWhileALongAnswerIsWritten(t *testing.T) {
	const size = 4 * mebibyte
	n := network("alpha")
	large(&n, size)
	handler, err := gateway.New(gateway.Config{Networks: []gateway.Network{n}, Keys: oneKey{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	line := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	server, err := gateway.Listen(ctx, gateway.ListenConfig{Listener: line}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	dialer := &http.Client{Transport: &http.Transport{DialContext: line.DialContext}}
	conn, _, err := websocket.Dial(ctx, "ws://pipe/ws/v3/"+goodKey, &websocket.DialOptions{HTTPClient: dialer})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	c := &socket{t, conn}
	c.send(call("test_huge"))
	synctest.Wait() // until the answer waits to be read
	ponged := make(chan error, 1)
	go func() { ponged <- conn.Ping(ctx) }()
	_, answer, err := conn.Reader(ctx)
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
	_ = conn.CloseNow()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
