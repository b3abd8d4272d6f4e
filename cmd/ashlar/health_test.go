package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"log"
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

// A listener with TLS answers, although its certificate is for other names than the address.
func TestHealthOverTLS(t *testing.T) {
	noCertificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("there is none for this name")
	}
	for _, c := range []struct {
		name, scheme string
		path         string // empty: /healthz
		status       int
		configure    func(*httptest.Server)
		code         int
		says         string
	}{
		{name: "a plain URL", scheme: "http", status: http.StatusOK},
		{name: "a URL with TLS", scheme: "https", status: http.StatusOK},
		{name: "HTTP/2", scheme: "http", status: http.StatusOK, configure: func(s *httptest.Server) { s.EnableHTTP2 = true }},
		{name: "not ready", scheme: "http", status: http.StatusServiceUnavailable, code: exitFailed, says: "answers 503 Service Unavailable: no network has a head"},
		{name: "a bad request to both", scheme: "http", status: http.StatusBadRequest, code: exitFailed, says: "answers 400 Bad Request: no network has a head"},
		// Certificates from ACME are for domains, and may not have been issued yet.
		{name: "no certificate for the address", scheme: "http", status: http.StatusOK, configure: func(s *httptest.Server) {
			s.TLS = &tls.Config{GetCertificate: noCertificate}
		}},
		{name: "the same says nothing about readiness", scheme: "http", path: "/readyz", status: http.StatusServiceUnavailable, configure: func(s *httptest.Server) {
			s.TLS = &tls.Config{GetCertificate: noCertificate}
		}, code: exitFailed, says: "no certificate for an address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no network has a head", c.status)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			if c.configure != nil {
				c.configure(server)
			}
			server.StartTLS()
			if server.TLS.GetCertificate != nil {
				server.TLS.Certificates = nil
			}
			defer server.Close()
			code, out := runCommand(t, "health", "--url", c.scheme+"://"+server.Listener.Addr().String()+cmp.Or(c.path, "/healthz"))
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, out)
			}
		})
	}
}

// A plain listener that answers 400 is not asked in another way.
func TestHealthOfABadRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad host", http.StatusBadRequest) }))
	defer server.Close()
	code, out := runCommand(t, "health", "--url", server.URL)
	if code != exitFailed || !strings.Contains(out, "answers 400 Bad Request: bad host") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// A certificate counts unless the address is one of this machine.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "localhost": true, "LOCALHOST": true, "::1": true, "192.0.2.7": false, "rpc.example.org": false, "": false,
		"localhost.example.org": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
