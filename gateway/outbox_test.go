package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/gateway"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// While more bytes of answers are unsent than fit the queue, further messages stay unread, and no
// connection is closed for it.
func TestSocketAnswersWait(t *testing.T) {
	const most, size = 60, mebibyte / 2 // fewer than may be in flight
	var calls atomic.Int64
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_huge", func(_ context.Context, _, out []byte) ([]byte, error) {
		calls.Add(1)
		return append(out, `"`+strings.Repeat("x", size)+`"`...), nil
	}))
	c := start(t, gateway.Config{Networks: []gateway.Network{n}, Sockets: gateway.SocketLimits{QueueBytes: mebibyte}}, 0).dial(nil)
	c.conn.SetReadLimit(-1)
	asked := int64(0)
	for asked < most && calls.Load() == asked { // the client reads nothing yet
		c.send(call("test_huge"))
		asked++
		for end := time.Now().Add(time.Second); calls.Load() < asked && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	if calls.Load() == most {
		t.Errorf("%d answers of %d bytes wait", most, size)
	}
	for i := range asked {
		if got := c.receive(); len(got) < size {
			t.Fatalf("answer %d: %.200s", i, got)
		}
	}
}

// Answers that wait because the client does not read are counted, however short they are.
func TestMemoryOfWaitingAnswers(t *testing.T) { synctest.Test(t, testMemoryOfWaitingAnswers) }

func testMemoryOfWaitingAnswers(t *testing.T) {
	const size, most = 6 << 10, 50 // fewer than may be in flight
	n := network("alpha")
	large(&n, size)
	handler, line, stop := startPipe(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 5 * most * size}} /* one key gets half */)
	c := dialLine(t, line, websocket.CompressionDisabled)
	ask := func(c *socket) {
		for range most {
			c.send(call("test_huge"))
		}
		synctest.Wait() // the first one is being written, the others wait
	}
	ask(c)
	if held := handler.Stats().HeldBytes; held < (most-1)*size || held > 2*most*size {
		t.Errorf("%d bytes are counted of %d answers of %d bytes", held, most, size)
	}
	for range most {
		if got := c.receive(); len(got) < size {
			t.Fatal(got)
		}
	}
	synctest.Wait()
	if held := handler.Stats().HeldBytes; held != 0 {
		t.Errorf("%d bytes are counted of answers that were read", held)
	}
	ask(c)
	other := dialLine(t, line, websocket.CompressionDisabled)
	ask(other)
	if got := other.drained(websocket.StatusTryAgainLater, "the server is busy: try again later"); got > 1 {
		t.Errorf("%d answers for which there was no memory", got)
	}
	for range most {
		c.receive()
	}
	_ = c.conn.CloseNow()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if refused := handler.Stats().Refused[gateway.RefusedMemory]; refused == 0 {
		t.Error("no answer was refused")
	}
}
