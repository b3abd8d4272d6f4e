package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/jsonrpc/jsonrpctest"
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
