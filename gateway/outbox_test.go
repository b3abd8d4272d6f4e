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
	"ashlar/limit"

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

// exhaust adds test_exhaust, which takes all memory of its caller's account until release is called,
// and test_huge, which counts its calls.
func exhaust(n *gateway.Network, size int) (calls *atomic.Int64, release func()) {
	calls = new(atomic.Int64)
	var lease limit.Lease
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_exhaust", func(ctx context.Context, _, out []byte) ([]byte, error) {
		lease = limit.Borrow(ctx)
		held := 0
		for bytes := 1 << 30; bytes > 0; bytes /= 2 {
			for lease.HoldAll(held + bytes) {
				held += bytes
			}
		}
		return append(out, "true"...), nil
	}))
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_huge", func(_ context.Context, _, out []byte) ([]byte, error) {
		calls.Add(1)
		return append(out, `"`+strings.Repeat("x", size)+`"`...), nil
	}))
	return calls, func() { lease.Release() }
}

// Messages in flight are counted, however short their answers are. A client that does not read them
// holds no more than that on any of its connections: it waits, and no answer is lost.
func TestMemoryOfWaitingAnswers(t *testing.T) { synctest.Test(t, testMemoryOfWaitingAnswers) }

func testMemoryOfWaitingAnswers(t *testing.T) {
	const size, most = 6 << 10, 50 // fewer than may be in flight
	n := network("alpha")
	calls, _ := exhaust(&n, size)
	handler, line, stop := startPipe(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 5 * most * size}} /* one key gets half */)
	ask := func(c *socket) (made int64) {
		before := calls.Load()
		go func() { // a pipe has no buffer
			for range most {
				c.send(call("test_huge"))
			}
		}()
		synctest.Wait() // the first answer is being written, the others wait
		return calls.Load() - before
	}
	read := func(c *socket) {
		for range most {
			if got := c.receive(); len(got) < size {
				t.Fatal(got)
			}
		}
		synctest.Wait()
	}
	c := dialLine(t, line, websocket.CompressionDisabled)
	made := ask(c)
	if held := handler.Stats().HeldBytes; made != most || held < (most-2)*size || held > 2*most*size {
		t.Errorf("%d bytes are counted of %d answers of %d bytes", held, made, size)
	}
	read(c)
	if held := handler.Stats().HeldBytes; held != 0 {
		t.Errorf("%d bytes are counted of answers that were read", held)
	}
	ask(c)
	other := dialLine(t, line, websocket.CompressionDisabled)
	if made, counted := ask(other), handler.Stats().HeldBytes; made == most || counted > 5*most*size/2 {
		t.Errorf("%d answers were made on another connection, and %d bytes are counted", made, counted)
	}
	read(other)
	read(c)
	if held := handler.Stats().HeldBytes; held != 0 {
		t.Errorf("%d bytes are counted of answers that were read", held)
	}
	_ = c.conn.CloseNow()
	_ = other.conn.CloseNow()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if refused := handler.Stats().Refused[gateway.RefusedMemory]; refused != 0 {
		t.Errorf("%d answers were refused", refused)
	}
}

// While an account holds all of its memory elsewhere, a connection whose client reads stays open.
// Short messages are answered, a few at a time, and calls whose answers do not fit are refused once.
func TestSocketWithoutMemory(t *testing.T) { synctest.Test(t, testSocketWithoutMemory) }

func testSocketWithoutMemory(t *testing.T) {
	const most = 20 // answers that wait for a moment
	for _, test := range []struct{ size, made, refused int }{{100, 2, 0}, {100_000, 2, most}} {
		n := network("alpha")
		calls, release := exhaust(&n, test.size)
		handler, line, stop := startPipe(t, gateway.Config{Networks: []gateway.Network{n}})
		c := dialLine(t, line, websocket.CompressionDisabled)
		c.send(call("test_exhaust"))
		c.receive()
		go func() {
			for range most {
				c.send(call("test_huge"))
			}
		}()
		synctest.Wait() // the client takes a while to read
		if made := int(calls.Load()); made != test.made {
			t.Errorf("%d calls ran of which no answer was read, expected %d", made, test.made)
		}
		for i := range most {
			if got := c.receive(); strings.Contains(got, `"code":-32005`) != (test.refused > 0) {
				t.Fatalf("answer %d: %.200s", i, got)
			}
		}
		_ = c.conn.CloseNow()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if refused := handler.Stats().Refused[gateway.RefusedMemory]; refused != uint64(test.refused) {
			t.Errorf("%d refusals are counted, expected %d", refused, test.refused)
		}
		if release(); handler.Stats().HeldBytes != 0 {
			t.Errorf("%d bytes are still counted", handler.Stats().HeldBytes)
		}
	}
}

// An answer that no call has counted, such as to a batch of invalid calls, is refused if there is
// no memory for it. The connection stays open.
func TestSocketAnswerWithoutMemory(t *testing.T) {
	n := network("alpha")
	_, release := exhaust(&n, 0)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	c := s.dial(nil)
	c.send(call("test_exhaust"))
	c.receive()
	c.send("[" + strings.Repeat("{},", 150) + "{}]") // the answer has 16 KiB
	if got := c.receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,`) {
		t.Errorf("answered %.200s", got)
	}
	release()
	if c.send(call("test_name")); !strings.Contains(c.receive(), "alpha") {
		t.Error("the connection is not answered any more")
	}
	if refused := s.handler.Stats().Refused[gateway.RefusedMemory]; refused != 1 {
		t.Errorf("%d refusals are counted, expected 1", refused)
	}
}
