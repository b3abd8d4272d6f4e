package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ashlar/gateway"
	resources "ashlar/internal/usage"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

const storageRequest = `{"jsonrpc":"2.0","id":1,"method":"test_storage","params":["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","0x0000000000000000000000000000000000000000000000000000000000000003","latest"]}`

// discard is a ResponseWriter without cost.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkHandler measures a request between net/http and its method.
func BenchmarkHandler(b *testing.B) {
	long := bytes.Repeat([]byte{'7'}, 64<<10)
	handler, err := gateway.New(gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{{
		Name: "alpha", Hosts: []string{"alpha.test"},
		Methods: jsonrpctest.Methods(jsonrpc.Handlers{
			"test_storage": func(_ context.Context, params, out []byte) ([]byte, error) {
				var args [3][]byte
				if err := jsonrpc.Arguments(params, args[:], 3); err != nil {
					return out, err
				}
				return append(out, `"0x0000000000000000000000000000000000000000000000000000000000000000"`...), nil
			},
			"test_long": func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, long...), nil },
		}),
	}}})
	if err != nil {
		b.Fatal(err)
	}
	const longRequest = `{"jsonrpc":"2.0","id":1,"method":"test_long","params":[{"fromBlock":"0x1234","toBlock":"0x123d"}]}`
	for _, c := range []struct{ name, request string }{
		{"look-up", storageRequest},
		{"100 look-ups", batchOf(100, storageRequest)},
		{"64 KiB", longRequest},
		{"100 x 64 KiB", batchOf(100, longRequest)},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := bytes.NewReader(nil)
			request, err := http.NewRequest("POST", "http://alpha.test/v3/"+goodKey, body)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.RemoteAddr = "192.0.2.1:1024"
			request.Body = io.NopCloser(body)
			request.ContentLength = int64(len(c.request))
			w := discard{make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset([]byte(c.request))
				clear(w.header)
				handler.ServeHTTP(w, request)
			}
		})
	}
}

// BenchmarkTransport measures a request with its transport. The client sends and compares
// bytes, so nearly all of the time is the server's and the operating system's.
func BenchmarkTransport(b *testing.B) {
	answer := `{"jsonrpc":"2.0","id":1,"result":"alpha"}`
	s := start(b, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	for name, open := range map[string]func() net.Conn{
		"HTTP": func() net.Conn {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			return conn
		},
		"WebSocket": func() net.Conn {
			conn, _ := handshake(b, s, "")
			return conn
		},
	} {
		request := call("test_name")
		if name == "HTTP" {
			request = fmt.Sprintf("POST /v3/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", goodKey, len(request), request)
		} else {
			request = frame(final|text, request)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			before := resources.Read().Processor
			b.RunParallel(func(p *testing.PB) {
				conn := open()
				defer conn.Close()
				got := make([]byte, 4096)
				for p.Next() {
					_, err := io.WriteString(conn, request)
					n := 0
					if err == nil {
						n, err = conn.Read(got)
					}
					if err != nil || !strings.HasSuffix(string(got[:n]), answer) {
						b.Errorf("got %q, %v", got[:n], err)
						return
					}
				}
			})
			used := resources.Read().Processor - before
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// batchOf returns a batch of n equal calls.
func batchOf(n int, call string) string {
	return "[" + strings.Repeat(call+",", n-1) + call + "]"
}
