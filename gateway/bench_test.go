package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"ashlar/gateway"
	"ashlar/jsonrpc"
)

const storageRequest = `{"jsonrpc":"2.0","id":1,"method":"test_storage","params":["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","0x0000000000000000000000000000000000000000000000000000000000000003","latest"]}`

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkHandler is what a request costs between net/http and its method.
func BenchmarkHandler(b *testing.B) {
	handler, err := gateway.New(gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{{
		Name: "alpha", Hosts: []string{"alpha.test"},
		Methods: jsonrpc.Methods{"test_storage": func(_ context.Context, params, out []byte) ([]byte, error) {
			var args [3][]byte
			if err := jsonrpc.Arguments(params, args[:], 3); err != nil {
				return out, err
			}
			return append(out, `"0x0000000000000000000000000000000000000000000000000000000000000000"`...), nil
		}},
	}}})
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.NewReader(nil)
	request, err := http.NewRequest("POST", "http://alpha.test/v3/"+goodKey, body)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Body = io.NopCloser(body)
	request.ContentLength = int64(len(storageRequest))
	w := discard{make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset([]byte(storageRequest))
		clear(w.header)
		handler.ServeHTTP(w, request)
	}
}
