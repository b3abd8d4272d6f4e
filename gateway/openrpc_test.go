package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ashlar/gateway"

	"github.com/klauspost/compress/gzip"
)

// A network's document is public, at every host, and takes precedence over the dashboard's
// pages. Networks without a document are answered like unknown ones.
func TestOpenRPC(t *testing.T) {
	alpha, broken := network("alpha", "alpha.test"), network("broken")
	alpha.OpenRPC = func(context.Context) ([]byte, error) { return []byte(`{"openrpc":"1.3.2"}`), nil }
	broken.OpenRPC = func(context.Context) ([]byte, error) { return nil, errors.New("a secret") }
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
	s := start(t, gateway.Config{
		Networks: []gateway.Network{alpha, broken, network("beta")},
		Pages:    gateway.Pages{Hosts: []string{gateway.AnyHost}, Handler: page},
	}, 0)
	const missing = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such network: expected /openrpc/<network>.json of a network that is served here"}}`
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/openrpc/alpha.json", 200, `{"openrpc":"1.3.2"}`},
		{"HEAD", "/openrpc/alpha.json", 200, ""},
		{"POST", "/openrpc/alpha.json", 405, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"method not allowed: expected GET"}}`},
		{"GET", "/openrpc/broken.json", 503, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the document could not be created: try again later"}}`},
		{"GET", "/openrpc/beta.json", 404, missing},
		{"GET", "/openrpc/gamma.json", 404, missing},
		{"GET", "/openrpc/.json", 404, missing},
		{"GET", "/openrpc/alpha", 200, "a page"},
	} {
		response, body := s.ask(c.method, c.path, "")
		if response.StatusCode != c.status || body != c.want {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, response.StatusCode, body, c.status, c.want)
		}
		if cached := response.Header.Get("Cache-Control") == "public, max-age=60"; cached != (c.status == 200 && c.want != "a page") {
			t.Errorf("%s %s: Cache-Control %q", c.method, c.path, response.Header.Get("Cache-Control"))
		}
	}
	if err := gateway.CheckNetworkName("openrpc"); err == nil {
		t.Error("a network may be called openrpc")
	}
}

// Caches may keep a document, so the answer to a request without an origin must be usable, or
// marked as unusable, for pages of every origin.
func TestOpenRPCIsCachedForEachOrigin(t *testing.T) {
	alpha := network("alpha")
	alpha.OpenRPC = func(context.Context) ([]byte, error) { return []byte(`{"openrpc":"1.3.2"}`), nil }
	for _, c := range []struct{ allowed, origin, want, vary string }{
		{gateway.AnyOrigin, "", "*", ""},
		{gateway.AnyOrigin, "https://a.test", "*", ""},
		{"https://a.test", "", "", "Origin"},
		{"https://a.test", "https://a.test", "https://a.test", "Origin"},
		{"https://a.test", "https://b.test", "", "Origin"},
	} {
		s := start(t, gateway.Config{Networks: []gateway.Network{alpha}, Origins: []string{c.allowed}}, 0)
		var headers []string
		if c.origin != "" {
			headers = []string{"Origin", c.origin}
		}
		response, _ := s.ask("GET", "/openrpc/alpha.json", "", headers...)
		if got, vary := response.Header.Get("Access-Control-Allow-Origin"), response.Header.Get("Vary"); got != c.want || vary != c.vary {
			t.Errorf("allowed %s, origin %q: %q with Vary %q, expected %q with %q", c.allowed, c.origin, got, vary, c.want, c.vary)
		}
	}
}

// A document is compressed once, not for each client.
func TestOpenRPCIsCompressedOnce(t *testing.T) {
	document := []byte(strings.Repeat("first ", 1000))
	alpha := network("alpha")
	alpha.OpenRPC = func(context.Context) ([]byte, error) { return document, nil }
	handler, err := gateway.New(gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{alpha}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(encoding string) []byte {
		w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()} // what it keeps is in no buffer that is used again
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/openrpc/alpha.json", nil)
		r.Header.Set("Accept-Encoding", encoding)
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != encoding || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("encoding %q, expected %q; headers %v", got, encoding, w.Header())
		}
		return w.kept
	}
	for _, text := range []string{"first ", "second ", "third "} {
		document = []byte(strings.Repeat(text, 1000))
		zipped := ask("gzip")
		if again := ask("gzip"); &zipped[0] != &again[0] {
			t.Errorf("%s: compressed twice", text)
		}
		if z, err := gzip.NewReader(bytes.NewReader(zipped)); err != nil {
			t.Error(err)
		} else if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, document) {
			t.Errorf("%s: %.100q, %v", text, plain, err)
		}
		if plain := ask(""); !bytes.Equal(plain, document) {
			t.Errorf("%s: not compressed: %.100q", text, plain)
		}
	}
}
