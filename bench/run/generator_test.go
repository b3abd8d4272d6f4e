package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// echo answers each request with its own text, in the way that the query of the URL names,
// and records the requests.
type echo struct {
	mu    sync.Mutex
	asked map[string]bool
}

func (e *echo) note(request string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[request] = true
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "websocket" {
		e.serveSocket(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.note(string(body))
	switch r.URL.RawQuery {
	case "refused":
		w.WriteHeader(http.StatusTooManyRequests)
	case "chunked":
		w.(http.Flusher).Flush()
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		w.Write(body[len(body)/2:])
	default:
		w.Write(body)
	}
}

func (e *echo) serveSocket(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer socket.CloseNow()
	socket.SetReadLimit(1 << 20)
	for {
		kind, message, err := socket.Read(r.Context())
		if err != nil {
			return
		}
		e.note(string(message))
		if err := socket.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}

func TestGenerator(t *testing.T) {
	requests := []string{`{"id":1,"error":{"code":-32000,"message":"timed out"}}`, `{"id":2,"params":["` + strings.Repeat("a", 200) + `"]}`, `{"id":3,"result":{"error":"` + strings.Repeat("b", 70_000) + `"}}`}
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(requests, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, scheme, query, err string }{
		{"HTTP", "http", "", ""},
		{"HTTP in chunks", "http", "chunked", ""},
		{"HTTP refused", "http", "refused", "429"},
		{"WebSocket", "ws", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &echo{asked: make(map[string]bool)}
			server := httptest.NewServer(e)
			defer server.Close()
			g, err := newGenerator(test.scheme+strings.TrimPrefix(server.URL, "http")+"/?"+test.query, file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.run(t.Context(), 3, 50*time.Millisecond)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want one with %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, request := range requests {
				if !e.asked[request] {
					t.Errorf("request %.20s… was never sent", request)
				}
			}
			if got.Requests < len(requests) || got.P50Micros <= 0 || got.P99Micros < got.P50Micros || got.AnswerSize < 20_000 {
				t.Errorf("measured %+v", got)
			}
			if got.Refused < 1 || got.Refused > got.Requests/len(requests)+1 {
				t.Errorf("counted %d of %d answers as errors, want those to one of %d requests", got.Refused, got.Requests, len(requests))
			}
		})
	}
}

// A load ends with its context, also if the server does not answer.
func TestGeneratorIsInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	g, err := newGenerator(server.URL, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.run(ctx, 2, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}
