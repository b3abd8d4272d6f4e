package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server that is not ready says why.
func TestHealthSaysWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no network has a head", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	code, out := runCommand(t, "health", "--url", server.URL)
	if code != exitFailed || !strings.Contains(out, "answers 503 Service Unavailable: no network has a head") {
		t.Errorf("exit code %d, %s", code, out)
	}
}
