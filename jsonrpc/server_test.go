package jsonrpc_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/jsonrpc"
)

// batchOf makes a batch of n calls of method with ids 0 to n-1.
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

// slowEcho answers with its params, later ones sooner, and counts how many run at once.
func slowEcho(most *atomic.Int32) jsonrpc.Method {
	var running atomic.Int32
	return func(_ context.Context, params, out []byte) ([]byte, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		time.Sleep(time.Duration(3-len(params)%3) * time.Millisecond)
		return append(out, params...), nil
	}
}

func TestParallelBatchKeepsOrderAndBound(t *testing.T) {
	var most atomic.Int32
	methods := jsonrpc.Methods{"test_slow": slowEcho(&most)}
	server := jsonrpc.NewServer(methods, jsonrpc.Config{BatchWorkers: 4})
	var want []string
	for i := range 120 {
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":[%d]}`, i, i))
	}
	got := server.Answer(context.Background(), batchOf(120, "test_slow"), nil)
	if want := "[" + strings.Join(want, ",") + "]"; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := most.Load(); n < 2 || n > 4 {
		t.Errorf("%d calls ran at once, want 2 to 4", n)
	}
}

func TestParallelBatchIsCutLikeASequentialOne(t *testing.T) {
	var most atomic.Int32
	methods := jsonrpc.Methods{"test_slow": slowEcho(&most)}
	config := jsonrpc.Config{BatchBytes: 1000}
	alone := jsonrpc.NewServer(methods, config).Answer(context.Background(), batchOf(60, "test_slow"), nil)
	config.BatchWorkers = 5
	parallel := jsonrpc.NewServer(methods, config).Answer(context.Background(), batchOf(60, "test_slow"), nil)
	if !bytes.Equal(alone, parallel) {
		t.Errorf("one by one: %s\nin parallel: %s", alone, parallel)
	}
	if !bytes.Contains(alone, []byte("response too large")) {
		t.Errorf("nothing was refused: %s", alone)
	}
}

func TestDeadline(t *testing.T) {
	methods := jsonrpc.Methods{"test_wait": func(ctx context.Context, _, out []byte) ([]byte, error) {
		<-ctx.Done()
		return out, ctx.Err()
	}}
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		server := jsonrpc.NewServer(methods, jsonrpc.Config{BatchWorkers: workers})
		got := server.Answer(ctx, batchOf(10, "test_wait"), nil)
		cancel()
		if n := bytes.Count(got, []byte(`{"code":-32002,"message":"request timed out"}`)); n != 10 {
			t.Errorf("%d workers: %d of 10 calls timed out: %s", workers, n, got)
		}
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

// calls is an Observer that remembers.
type calls struct {
	mu   sync.Mutex // guards seen
	seen []string
}

func (c *calls) Called(_ context.Context, method string, took time.Duration, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf("%q %d %t", method, code, took > 0))
}

func TestObserver(t *testing.T) {
	var observer calls
	server := jsonrpc.NewServer(testMethods(), jsonrpc.Config{Observer: &observer, Log: slog.New(slog.DiscardHandler)})
	for _, method := range []string{"test_nothing", "test_revert", "test_panic", "made_up"} {
		server.Answer(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q}`, method), nil)
	}
	got := strings.Join(observer.seen, ", ")
	if want := `"test_nothing" 0 true, "test_revert" 3 true, "test_panic" -32603 true, "" -32601 true`; got != want {
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
	return jsonrpc.NewServer(jsonrpc.Methods{"test_storage": func(_ context.Context, params, out []byte) ([]byte, error) {
		var args [3][]byte
		if err := jsonrpc.Arguments(params, args[:], 3); err != nil {
			return out, err
		}
		return append(append(append(out, '"'), "0x0000000000000000000000000000000000000000000000000000000000000000"...), '"'), nil
	}}, config)
}

func TestAnswerDoesNotAllocate(t *testing.T) {
	server, ctx := storageServer(jsonrpc.Config{}), context.Background()
	request, out := []byte(storageRequest), make([]byte, 0, 1024)
	n := testing.AllocsPerRun(200, func() { out = server.Answer(ctx, request, out[:0]) })
	if n >= 1 {
		t.Errorf("%v allocations for a call", n)
	}
}

// BenchmarkAnswer is all that a call costs besides its method and its transport.
func BenchmarkAnswer(b *testing.B) {
	server, ctx := storageServer(jsonrpc.Config{}), context.Background()
	request, out := []byte(storageRequest), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		out = server.Answer(ctx, request, out[:0])
	}
}
