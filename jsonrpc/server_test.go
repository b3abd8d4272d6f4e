package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/jsonrpc"
)

// TestArrays: empty arrays, one item, several items; an error ends the array.
func TestArrays(t *testing.T) {
	room := jsonrpc.RoomFor(context.Background(), nil)
	number := func(out []byte, i int) []byte { return strconv.AppendInt(out, int64(i), 10) }
	for _, c := range []struct {
		items []int
		want  string
	}{{nil, "[]"}, {[]int{0}, "[0]"}, {[]int{0, 1, 2}, "[0,1,2]"}} {
		if got := jsonrpc.AppendArray([]byte("at "), c.items, number); string(got) != "at "+c.want {
			t.Errorf("%v: %s, want %s", c.items, got, c.want)
		}
		got, err := room.AppendArray([]byte("at "), len(c.items), func(out []byte, i int) ([]byte, error) { return number(out, i), nil })
		if string(got) != "at "+c.want || err != nil {
			t.Errorf("%d items: %s, %v, want %s", len(c.items), got, err, c.want)
		}
	}
	failure, calls := errors.New("unreadable"), 0
	_, err := room.AppendArray(nil, 3, func(out []byte, _ int) ([]byte, error) { calls++; return out, failure })
	if err != failure || calls != 1 {
		t.Errorf("%d calls and %v, want one that fails", calls, err)
	}
}

// batchOf returns a batch of n calls of method with ids 0 to n-1.
func batchOf(n int, method string) []byte {
	out := []byte("[")
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":[%d]}`, i, method, i)
	}
	return append(out, ']')
}

// TestRoom: a method is stopped after the item that exceeds the room, wherever its result
// begins in the buffer.
func TestRoom(t *testing.T) {
	const limit, part = 1000, 64
	most := 0
	methods := jsonrpc.Handlers{"test_much": func(ctx context.Context, _, out []byte) ([]byte, error) {
		begin := len(out)
		return jsonrpc.RoomFor(ctx, out).AppendArray(out, 1000, func(out []byte, _ int) ([]byte, error) {
			out = append(out, make([]byte, part)...)
			most = max(most, len(out)-begin)
			return out, nil
		})
	}}
	server := jsonrpc.NewServer(methods, jsonrpc.Config{AnswerBytes: limit})
	got := server.Answer(context.Background(), batchOf(3, "test_much"), nil)
	if n := bytes.Count(got, []byte(`{"code":-32003,"message":"response too large"}`)); n != 3 {
		t.Errorf("%d of 3 results were too large: %s", n, got)
	}
	if most <= limit || most > limit+part+len(",") {
		t.Errorf("%d bytes were made, want an item more than %d at most", most, limit)
	}
	if err := jsonrpc.RoomFor(context.Background(), nil).Check(1 << 40); err != nil {
		t.Errorf("outside of a server: %v", err)
	}
}

// holder allows most bytes and records the last length, the last capacity and what is dropped.
type holder struct {
	most, asked, reserved int
	dropped               []string
}

var errHeld = &jsonrpc.Error{Code: -32005, Message: "no memory"}

func (h *holder) Hold(length int) error {
	if h.asked = length; length > h.most {
		return errHeld
	}
	return nil
}

func (h *holder) Reserve(capacity int) bool {
	h.reserved = capacity
	return capacity <= h.most
}

func (h *holder) Drop(answer []byte) { h.dropped = append(h.dropped, string(answer)) }

// TestDrop: the holder is called with the answer that does not fit into a batch.
func TestDrop(t *testing.T) {
	server := jsonrpc.NewServer(jsonrpc.Handlers{"test_long": func(_ context.Context, _, out []byte) ([]byte, error) {
		return append(out, `"long"`...), nil
	}}, jsonrpc.Config{BatchBytes: 100})
	h := &holder{most: 1000}
	server.Answer(context.WithValue(context.Background(), jsonrpc.HolderKey{}, h), batchOf(4, "test_long"), nil)
	if want := `,{"jsonrpc":"2.0","id":2,"result":"long"}`; len(h.dropped) != 1 || h.dropped[0] != want {
		t.Errorf("dropped %q, want %s", h.dropped, want)
	}
}

// TestLongBatch: the buffer of a batch grows once to what all answers will take, if there is
// memory for it, and otherwise as it fills.
func TestLongBatch(t *testing.T) {
	const calls, length = 100, 48 << 10
	text := strings.Repeat("a", length)
	methods := jsonrpc.Handlers{"test_long": func(_ context.Context, _, out []byte) ([]byte, error) {
		return jsonrpc.AppendString(out, text), nil
	}}
	server := jsonrpc.NewServer(methods, jsonrpc.Config{})
	request := []byte("[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"test_long"},`, calls-1) + `{"jsonrpc":"2.0","id":1,"method":"test_long"}]`)
	whole := calls * (length + len(`{"jsonrpc":"2.0","id":1,"result":""},`))
	limited := jsonrpc.NewServer(methods, jsonrpc.Config{BatchBytes: whole / 2})
	h := &holder{most: 2 * whole}
	answer := limited.Answer(context.WithValue(context.Background(), jsonrpc.HolderKey{}, h), request, nil)
	if most := whole/2 + whole/8; len(answer) < whole/3 || cap(answer) > most || h.reserved > most {
		t.Errorf("with a limit of %d bytes: asked for %d, a buffer of %d for an answer of %d", whole/2, h.reserved, cap(answer), len(answer))
	}
	for _, h := range []*holder{nil, {most: 2 * whole}, {most: whole / 2}} {
		ctx := context.Background()
		if h != nil {
			ctx = context.WithValue(ctx, jsonrpc.HolderKey{}, h)
		}
		answer := server.Answer(ctx, request, nil)
		if len(answer) != whole+1 {
			t.Fatalf("%d bytes, want %d", len(answer), whole+1)
		}
		switch once := h == nil || h.most > whole; {
		case once && cap(answer) > whole+whole/4:
			t.Errorf("a buffer of %d bytes for an answer of %d", cap(answer), len(answer))
		case h == nil:
		case h.reserved < whole || h.reserved > whole+whole/4:
			t.Errorf("asked for %d bytes for an answer of %d", h.reserved, len(answer))
		}
	}
}

// TestHolder: the holder is called with the full length of the buffer, and ends the call.
func TestHolder(t *testing.T) {
	h := &holder{most: 100}
	ctx := context.WithValue(context.Background(), jsonrpc.HolderKey{}, h)
	for _, c := range []struct {
		begin int
		want  error
	}{{0, nil}, {90, nil}, {91, errHeld}} {
		out := make([]byte, c.begin)
		_, err := jsonrpc.RoomFor(ctx, out).AppendArray(out, 1, func(out []byte, _ int) ([]byte, error) { return append(out, "123456789"...), nil })
		if err != c.want || h.asked != c.begin+len("[123456789") {
			t.Errorf("behind %d bytes: %v for %d bytes, want %v", c.begin, err, h.asked, c.want)
		}
	}
}

func TestDeadline(t *testing.T) {
	methods := jsonrpc.Handlers{"test_wait": func(ctx context.Context, _, out []byte) ([]byte, error) {
		<-ctx.Done()
		return out, ctx.Err()
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	got := jsonrpc.NewServer(methods, jsonrpc.Config{}).Answer(ctx, batchOf(10, "test_wait"), nil)
	if n := bytes.Count(got, []byte(`{"code":-32002,"message":"request timed out"}`)); n != 10 {
		t.Errorf("%d of 10 calls timed out: %s", n, got)
	}
}

func TestPanicIsLoggedWithItsStack(t *testing.T) {
	var log bytes.Buffer
	server := jsonrpc.NewServer(testMethods(), jsonrpc.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	server.Answer(context.Background(), []byte(`{"jsonrpc":"2.0","id":1,"method":"test_panic"}`), nil)
	for _, want := range []string{"method=test_panic", "panic=\"a bug\"", "conversation_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s: %s", want, log.String())
		}
	}
}

// calls is an Observer that records the calls.
type calls struct {
	mu   sync.Mutex // guards seen
	seen []string
}

func (c *calls) Called(_ context.Context, done jsonrpc.Completed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf("%q %d %t %s", done.Method, done.Code(), done.Took > 0, done.Params))
}

func TestObserver(t *testing.T) {
	var observer calls
	server := jsonrpc.NewServer(testMethods(), jsonrpc.Config{Observer: &observer, Log: slog.New(slog.DiscardHandler)})
	for _, method := range []string{"test_nothing", "test_revert", "test_panic", "made_up"} {
		server.Answer(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":[7]}`, method), nil)
	}
	got := strings.Join(observer.seen, ", ")
	if want := `"test_nothing" 0 true [7], "test_revert" 3 true [7], "test_panic" -32603 true [7], "" -32601 true [7]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMethodNameTooLong(t *testing.T) {
	server := jsonrpc.NewServer(nil, jsonrpc.Config{})
	got := server.Answer(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q}`, strings.Repeat("m", 2049)), nil)
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method name too long: 2049 > 2048"}}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

const storageRequest = `{"jsonrpc":"2.0","id":1,"method":"test_storage","params":["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","0x0000000000000000000000000000000000000000000000000000000000000003","latest"]}`

func storageServer(config jsonrpc.Config) *jsonrpc.Server {
	return jsonrpc.NewServer(jsonrpc.Handlers{"test_storage": func(_ context.Context, params, out []byte) ([]byte, error) {
		var args [3][]byte
		if err := jsonrpc.Arguments(params, args[:], 3); err != nil {
			return out, err
		}
		return append(append(append(out, '"'), "0x0000000000000000000000000000000000000000000000000000000000000000"...), '"'), nil
	}}, config)
}

func TestAnswerDoesNotAllocate(t *testing.T) {
	server := storageServer(jsonrpc.Config{})
	ctx := context.WithValue(context.Background(), jsonrpc.ServerKey{}, server)
	request, out := []byte(storageRequest), make([]byte, 0, 1024)
	n := testing.AllocsPerRun(200, func() { out = server.Answer(ctx, request, out[:0]) })
	if n >= 1 {
		t.Errorf("%v allocations for a call", n)
	}
}

// BenchmarkAnswer measures the overhead of a call without its method and transport.
func BenchmarkAnswer(b *testing.B) {
	server := storageServer(jsonrpc.Config{})
	ctx := context.WithValue(context.Background(), jsonrpc.ServerKey{}, server)
	request, out := []byte(storageRequest), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		out = server.Answer(ctx, request, out[:0])
	}
}
