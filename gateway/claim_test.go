package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"
)

// leftBehind is the size in bytes of a buffer that an earlier message left behind.
const leftBehind = 512 << 10

// leave puts a buffer of an earlier message into the pool. The pool may drop it, so what depends
// on it is tried until it is found.
func leave(h *Handler) {
	left := make([]byte, 0, leftBehind)
	h.buffers.Put(&left)
}

func alone(t *testing.T, handlers jsonrpc.Handlers) *Handler {
	h, err := New(Config{Keys: anyKey{}, Log: slog.New(slog.DiscardHandler), Networks: []Network{{Name: "alpha", Methods: jsonrpctest.Methods(handlers)}}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// firstRead is a body of which the first read is watched.
type firstRead struct {
	io.Reader
	seen func(room int)
}

func (r *firstRead) Read(p []byte) (int, error) {
	if r.seen != nil {
		r.seen(len(p))
		r.seen = nil
	}
	return r.Reader.Read(p)
}

// While a compressed body arrives, the buffer for it is counted.
func TestBufferOfACompressedBodyIsCounted(t *testing.T) {
	h := alone(t, nil)
	for found := false; !found; {
		leave(h)
		e := newExchange(t.Context(), h.current.Load(), h.current.Load().networks.only, new(account.Key), netip.Addr{}, "")
		r := httptest.NewRequest(http.MethodPost, "/", &firstRead{strings.NewReader(""), func(room int) {
			found = room == leftBehind
			if held := h.memory.Held(); found && held < leftBehind {
				t.Errorf("%d bytes are counted with a buffer of %d", held, leftBehind)
			}
		}})
		r.Header.Set("Content-Encoding", "gzip")
		if _, err := h.bodies.read(r, nil, e); err == nil {
			t.Fatal("an empty body was decompressed")
		}
		e.lease.Release()
	}
}

// The buffer for a compressed body is not counted any more once the body is decompressed, neither by
// itself nor together with a buffer for the answer.
func TestBufferOfACompressedBodyIsGivenBack(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := io.WriteString(z, `{"jsonrpc":"2.0","id":1,"method":"test_echo"}`); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	h := alone(t, nil)
	for found := false; !found; {
		leave(h)
		e := newExchange(t.Context(), h.current.Load(), h.current.Load().networks.only, new(account.Key), netip.Addr{}, "")
		r := httptest.NewRequest(http.MethodPost, "/", &firstRead{bytes.NewReader(zipped.Bytes()), func(room int) { found = room == leftBehind }})
		r.Header.Set("Content-Encoding", "gzip")
		body := make([]byte, 0, 20<<10)
		e.claim(&h.buffers, &body)
		if _, err := h.bodies.read(r, body, e); err != nil {
			t.Fatal(err)
		}
		if held := h.memory.Held(); held != 24<<10 {
			t.Errorf("%d bytes are counted with a body's buffer of 20 KiB", held)
		}
		answer := make([]byte, 0, 100<<10)
		e.claim(&h.buffers, &answer)
		if held := h.memory.Held(); held != 120<<10 {
			t.Errorf("%d bytes are counted with buffers of 20 and 100 KiB", held)
		}
		e.lease.Release()
	}
}

// The buffer in which the parts of a message are joined is counted while the message is written,
// or a small one is used.
func TestBufferOfJoinedPartsIsCounted(t *testing.T) {
	h := alone(t, nil)
	s := &socket{handler: h, out: outbox{memory: h.memory, holding: new(limit.Holding)}}
	parts := [][]byte{[]byte("one "), []byte("message")}
	for found := false; !found; {
		leave(h)
		joined, lease := s.joined(parts)
		found = cap(*joined) == leftBehind
		if held := h.memory.Held(); string(*joined) != "one message" || found && held < leftBehind {
			t.Errorf("%q, %d bytes are counted with a buffer of %d", *joined, held, cap(*joined))
		}
		h.buffers.Put(joined)
		lease.Release()
	}
	h.memory.SetMax(leftBehind)
	for range 20 {
		leave(h)
		joined, lease := s.joined(parts)
		if string(*joined) != "one message" || cap(*joined) > smallBuffer {
			t.Errorf("%q in a buffer of %d bytes, for which there is no memory", *joined, cap(*joined))
		}
		lease.Release()
	}
	if held := h.memory.Held(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}

// While a stream's message is made and sent, the buffer for it is counted.
func TestBufferOfAStepIsCounted(t *testing.T) {
	h := alone(t, nil)
	found := make(chan int64)
	s := newSocket(h, httptest.NewRequest(http.MethodGet, "/", nil), "alpha", route{}, holder{}, nil)
	run := &steps{socket: s, step: func(_ context.Context, _ string, out []byte) ([]byte, error) {
		if cap(out) == leftBehind {
			found <- h.memory.Held()
			return out, io.EOF
		}
		return out, nil
	}}
	go func() {
		for {
			leave(h)
			if err := run.next(t.Context(), ""); err != nil {
				return
			}
		}
	}()
	if held := <-found; held < leftBehind {
		t.Errorf("%d bytes are counted with a buffer of %d", held, leftBehind)
	}
}

// A body that fits into the memory is read whatever the size of the buffer that it begins with.
func TestBufferGrowsByWhatThereIs(t *testing.T) {
	const memory, body = 100_000, 60_000
	h := alone(t, nil)
	for _, room := range []int{0, 4 << 10, 40 << 10, 57_344, 59_999, 64 << 10} {
		e := newExchange(t.Context(), h.current.Load(), h.current.Load().networks.only, new(account.Key), netip.Addr{}, "")
		e.lease = limit.Lease{Budget: limit.NewBudget(2 * memory), Caller: new(limit.Holding)} // half of it for one
		for length, fits := range map[int]bool{body: true, 2 * memory: false} {
			read, err := readAll(strings.NewReader(strings.Repeat("x", length)), make([]byte, 0, room), e)
			if got := err == nil && len(read) == length; got != fits || !fits && !errors.Is(err, limit.ErrMemory) {
				t.Errorf("a buffer of %d bytes: read %d of %d, %v", room, len(read), length, err)
			}
			e.lease.Release()
		}
	}
}
