package watch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func request(took time.Duration, calls ...gateway.WatchedCall) *gateway.Watched {
	return &gateway.Watched{
		Network: "demo", Began: time.Unix(1000, 0), Took: took, Asked: 70, Answered: 40, Calls: calls, Total: len(calls),
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func TestLog(t *testing.T) {
	ok, failed, unknown := gateway.WatchedCall{Method: "eth_chainId"}, gateway.WatchedCall{Method: "eth_call", Code: 3}, gateway.WatchedCall{Code: -32601}
	for _, test := range []struct {
		name    string
		all     bool
		slow    time.Duration
		request *gateway.Watched
		want    map[string]any // nil: no line
	}{
		{"all", true, 0, request(time.Second, ok), map[string]any{"level": "INFO", "msg": "request", "method": "eth_chainId", "code": 0.0, "calls": 1.0, "asked_bytes": 70.0, "answered_bytes": 40.0, "network": "demo"}},
		{"batch", true, 0, request(time.Second, ok, failed, ok, unknown), map[string]any{"method": "eth_chainId,eth_call,unknown", "code": 3.0, "calls": 4.0}},
		{"fast", false, time.Minute, request(time.Second, ok), nil},
		{"slow", false, time.Second, request(time.Second, ok), map[string]any{"level": "WARN", "msg": "slow request", "took": 1e9}},
		{"slow among all", true, time.Second, request(time.Second, ok), map[string]any{"level": "WARN", "msg": "slow request"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			Log(slog.New(slog.NewJSONHandler(&out, nil)), test.all, test.slow)(t.Context(), test.request)
			if test.want == nil {
				if out.Len() > 0 {
					t.Errorf("logged %s, expected nothing", &out)
				}
				return
			}
			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v", &out, err)
			}
			for key, want := range test.want {
				if line[key] != want {
					t.Errorf("%s is %v, expected %v", key, line[key], want)
				}
			}
			if strings.Contains(out.String(), "0af7") {
				t.Errorf("the line has a header of the client: %s", &out)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	if Join(nil, nil) != nil {
		t.Error("no watcher, expected nil")
	}
	calls := 0
	count := func(context.Context, *gateway.Watched) { calls++ }
	Join(count, nil, count)(t.Context(), request(0))
	if calls != 2 {
		t.Errorf("%d calls, expected 2", calls)
	}
}

// TestTracer sends traces to a collector, which sees a span for the request and one for
// each call, below the client's own.
func TestTracer(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		raw, err := io.ReadAll(body)
		in := new(collector.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(raw, in)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- in
	}))
	defer server.Close()
	tracer, err := NewTracer(t.Context(), server.URL+"/v1/traces", 0, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := request(time.Second, gateway.WatchedCall{Method: "eth_call", Ended: time.Unix(1001, 0), Took: time.Second / 2, Code: 3})
	tracer.Watch(t.Context(), w) // sampled, because the client's trace is
	w.TraceParent = ""
	tracer.Watch(t.Context(), w) // not sampled
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	in := <-received
	spans := in.ResourceSpans[0].ScopeSpans[0].Spans
	if len(in.ResourceSpans) != 1 || len(spans) != 2 {
		t.Fatalf("%d spans, expected 2: %v", len(spans), in)
	}
	call, whole := spans[0], spans[1]
	if call.Name != "eth_call" || whole.Name != "request" || string(call.ParentSpanId) != string(whole.SpanId) {
		t.Errorf("spans %v, expected a request with a call", spans)
	}
	if got := whole.EndTimeUnixNano - whole.StartTimeUnixNano; got != 1e9 || call.StartTimeUnixNano != uint64(1000.5e9) {
		t.Errorf("the request took %d ns, the call began at %d", got, call.StartTimeUnixNano)
	}
	if whole.ParentSpanId == nil || whole.TraceId[0] != 0x0a {
		t.Errorf("trace %x below %x, expected the client's", whole.TraceId, whole.ParentSpanId)
	}
}
