package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestClientDisconnects tests that a handler learns of it, however it looks.
func TestClientDisconnects(t *testing.T) {
	for name, wait := range map[string]func(context.Context){
		"Done": func(ctx context.Context) { <-ctx.Done() },
		"derived": func(ctx context.Context) {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			<-derived.Done()
		},
		"Err": func(ctx context.Context) {
			for ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan error)
			s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				close(begun)
				wait(r.Context())
				ended <- r.Context().Err()
			}), nil)
			c := dial(t, s.address)
			c.send(request("/", "hello"))
			<-begun
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestWatchingLosesNothing tests that bytes of later requests that arrive while a request is
// watched are not lost, whether the body has been read or not.
func TestWatchingLosesNothing(t *testing.T) {
	watched := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watched" {
			before, after := r.Context().Done(), io.Discard
			_, _ = io.Copy(after, r.Body)
			watched <- struct{}{}
			<-watched
			select {
			case <-before:
				t.Error("the context ended")
			default:
			}
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.URL.Path+" "), body...))
	}), nil)
	c := dial(t, s.address)
	for range 20 {
		c.send(request("/watched", "hello"))
		<-watched
		c.send(request("/next", "again"))
		time.Sleep(time.Millisecond) // so that usually the bytes arrive while the connection is watched
		watched <- struct{}{}
		for _, want := range []string{"/watched ", "/next again"} {
			if answer := c.answer(); answer != "200 OK\nContent-Length: "+map[int]string{9: "9", 11: "11"}[len(want)]+"\r\nclose: false\n"+want {
				t.Fatalf("got %s, want %s", answer, want)
			}
		}
	}
}

// TestContextEndsWithItsRequest tests contexts that are kept beyond their request.
func TestContextEndsWithItsRequest(t *testing.T) {
	for _, arm := range []bool{false, true} {
		var kept context.Context
		s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			kept = r.Context()
			if arm {
				kept.Done()
			}
		}), nil)
		c := dial(t, s.address)
		c.send(request("/", "not read"))
		c.answer()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-kept.Done()
		if err := kept.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("armed %v: error %v", arm, err)
		}
	}
}
