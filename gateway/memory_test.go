package gateway_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"
)

const mebibyte = 1 << 20

// large adds two methods whose results have the given size: one creates it at once, the
// other in parts, and counts them.
func large(n *gateway.Network, bytes int) (parts *int) {
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_huge", func(_ context.Context, _, out []byte) ([]byte, error) {
		return append(out, `"`+strings.Repeat("x", bytes)+`"`...), nil
	}))
	parts = new(int)
	part := `"` + strings.Repeat("x", 1000) + `"`
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_parts", func(ctx context.Context, _, out []byte) ([]byte, error) {
		*parts = 0
		return jsonrpc.RoomFor(ctx, out).AppendArray(out, bytes/len(part), func(out []byte, _ int) ([]byte, error) {
			*parts++
			return append(out, part...), nil
		})
	}))
	return parts
}

// The earlier answers of a batch stay in memory while its other calls run. Once one does
// not fit, it and all later calls are refused and not run.
func TestMemoryWhileABatchIsMade(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	n := held(begun, release)
	large(&n, mebibyte)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 16 * mebibyte}}, 0)
	huge := strings.Repeat(call("test_huge")+",", 3)
	answer := make(chan string)
	go func() {
		_, text := s.post("[" + huge + call("test_held") + "]")
		answer <- text
	}()
	<-begun
	if holds := s.handler.Stats().HeldBytes; holds < 3*mebibyte {
		t.Errorf("%d bytes are held with three answers of a MiB", holds)
	}
	close(release)
	if text := <-answer; strings.Count(text, `"result"`) != 4 {
		t.Errorf("%d of 4 calls are answered", strings.Count(text, `"result"`))
	}
	for _, kind := range []string{"HTTP", "WebSocket"} {
		batch := "[" + strings.Repeat(huge, 10) + call("test_held") + "]" // the last would be counted in begun
		var text string
		if kind == "HTTP" {
			var status int
			if status, _, text = s.with(goodKey, batch); status != 200 {
				t.Errorf("status %d", status)
			}
		} else {
			c := s.dial(nil)
			c.conn.SetReadLimit(-1)
			c.send(batch)
			text = c.receive()
		}
		results, busy := strings.Count(text, `"result"`), strings.Count(text, `"code":-32005,"message":"the server is busy`)
		if results == 0 || results > 16 || results+busy != 31 || strings.LastIndex(text, `"result"`) > strings.Index(text, `"error"`) {
			t.Errorf("%s: %d results and %d refusals of 31 calls", kind, results, busy)
		}
	}
	if len(begun) != 0 {
		t.Error("a call was made that was refused")
	}
	await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 }) // after the answer is written
}

// A call that checks its room stops when memory runs out, before its result is complete.
func TestMemoryWhileAResultIsMade(t *testing.T) {
	n := network("alpha")
	parts := large(&n, 16*mebibyte)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 2 * mebibyte}}, 0)
	for _, method := range []string{"test_parts", "test_huge"} {
		status, header, text := s.with(goodKey, call(method))
		if status != 503 || header.Get("Retry-After") != "1" || !strings.HasPrefix(text, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,`) {
			t.Errorf("%s: %d %.200s", method, status, text)
		}
	}
	if *parts > 2*mebibyte/1000 {
		t.Errorf("%d KB were made of which 2 MiB could be held", *parts)
	}
	await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 }) // after the answer is written
}

// A key that does not read its answers holds at most half of the memory, on any number of
// connections, and other keys are answered meanwhile.
func TestWhoDoesNotReadLeavesMemory(t *testing.T) {
	n := network("alpha")
	large(&n, 24*mebibyte)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Keys: twoKeys{}, Limits: gateway.Limits{Memory: 100 * mebibyte}}, time.Millisecond)
	request := call("test_huge")
	for range 4 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v3/%s HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", goodKey, len(request), request)
	}
	await.Until(t, "answers to hold memory and others to be refused", func() bool {
		stats := s.handler.Stats()
		return stats.HeldBytes >= 48*mebibyte && stats.Refused[gateway.RefusedMemory] >= 2
	})
	if status, _, answer := s.with(secondKey, call("test_huge")); status != 200 {
		t.Errorf("another key: %d %.200s", status, answer)
	}
}

// Buffers are reused, and a short request may get one that a long request left behind. What
// waiting requests hold in such buffers is counted, too.
func TestMemoryOfReusedBuffers(t *testing.T) {
	begun, release := make(chan struct{}, 64), make(chan struct{})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{held(begun, release)}, Limits: gateway.Limits{Memory: 128 * mebibyte, Light: 100}, // enough for all; Light depends on the machine
		Sockets: gateway.SocketLimits{Ping: time.Hour, Idle: time.Hour}, // the client does not read while it sends
	}, 0)
	inUse := func() int64 {
		for range 3 { // buffers that nothing uses are freed
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	c := s.dial(nil)
	before := inUse()
	long := strings.Repeat(" ", 400<<10) + call("test_echo")
	for range 60 {
		if response, _ := s.post(long); response.StatusCode != 200 {
			t.Fatalf("status %d", response.StatusCode)
		}
		c.send(call("test_held"))
		<-begun
	}
	if took, counted := inUse()-before, s.handler.Stats().HeldBytes; took > counted+4*mebibyte {
		t.Errorf("60 waiting requests take %d bytes, and %d are counted", took, counted)
	}
	close(release)
	for range 60 {
		c.receive()
	}
	await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 }) // after the answer is written
}

// A method can lend memory of its account to work outside of the request.
func TestMemoryThatIsLent(t *testing.T) {
	n := network("alpha")
	var bytes int
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_lent", func(ctx context.Context, _, out []byte) ([]byte, error) {
		lease := limit.Borrow(limit.OnBehalf(context.Background(), ctx))
		defer lease.Release()
		if !lease.Hold(bytes) {
			return out, fmt.Errorf("of a node: %w", limit.ErrMemory)
		}
		return append(out, "true"...), nil
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 2 * mebibyte}}, 0)
	for _, c := range []struct{ bytes, status int }{{mebibyte / 2, 200}, {3 * mebibyte / 2, 503}, {mebibyte / 2, 200}} {
		bytes = c.bytes
		if status, header, text := s.with(goodKey, call("test_lent")); status != c.status || (header.Get("Retry-After") == "1") != (status == 503) {
			t.Errorf("%d bytes: status %d, expected %d; %.200s", bytes, status, c.status, text)
		}
	}
	stats := s.handler.Stats()
	if stats.HeldBytes != 0 || stats.Refused[gateway.RefusedMemory] != 1 {
		t.Errorf("%d bytes are held, %d calls were refused", stats.HeldBytes, stats.Refused[gateway.RefusedMemory])
	}
}

// The compressed form of an answer is counted beside the answer. An answer that fits into memory
// only without it is sent as it is.
func TestMemoryOfCompressedAnswers(t *testing.T) {
	n := network("alpha")
	random(&n, 3*mebibyte)
	for memory, coding := range map[int64]string{7 * mebibyte: "", 64 * mebibyte: "gzip"} { // one key gets half
		s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: memory}}, 0)
		response, answer := s.ask("POST", "/v3/"+goodKey, call("test_random"), "Content-Type", "application/json", "Accept-Encoding", "gzip")
		if got := response.Header.Get("Content-Encoding"); response.StatusCode != 200 || got != coding || len(answer) < mebibyte {
			t.Errorf("%d bytes of memory: status %d, encoding %q, %d bytes; expected %q", memory, response.StatusCode, got, len(answer), coding)
		}
		await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 })
	}
}
