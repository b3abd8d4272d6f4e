package gateway_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ashlar/gateway"
)

// brokenWriter fails to write an answer and keeps it, as HTTP/2 does for a moment after the
// client has reset the stream.
type brokenWriter struct {
	*httptest.ResponseRecorder
	kept []byte
}

func (w *brokenWriter) Write(answer []byte) (int, error) {
	w.kept = answer
	return 0, errors.New("the stream is closed")
}

// The buffer of an answer is not used again after its write failed.
func TestBuffersAreNotReusedAfterAFailedWrite(t *testing.T) {
	handler, err := gateway.New(gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{network("one")}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(w http.ResponseWriter, text string, encoding ...string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.test/v3/"+goodKey,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"test_echo","params":["`+text+`"]}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header["Accept-Encoding"] = encoding
		handler.ServeHTTP(w, r)
	}
	for _, length := range []int{100, 2000, 100_000} {
		for _, encoding := range []string{"", "gzip"} {
			for range 10 {
				broken := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
				ask(broken, strings.Repeat("a", length), encoding)
				before := string(broken.kept)
				for range 20 {
					ask(httptest.NewRecorder(), strings.Repeat("b", length), encoding)
				}
				if len(before) == 0 || string(broken.kept) != before {
					t.Fatalf("an answer of %d bytes, encoding %q, was overwritten", len(before), encoding)
				}
			}
		}
	}
}
