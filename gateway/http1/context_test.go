package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestClientDisconnects tests that a handler learns of it, however it looks.
func TestClientDisconnects(t *testing.T) {
	const early = "Done before the body was read"
	for name, wait := range map[string]func(context.Context){
		"Done": func(ctx context.Context) { <-ctx.Done() },
		early:  func(ctx context.Context) { <-ctx.Done() },
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
		for _, body := range []string{"hello", ""} {
			t.Run(fmt.Sprintf("%s, body %q", name, body), func(t *testing.T) {
				begun, ended := make(chan struct{}), make(chan error)
				s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if name == early {
						r.Context().Done()
					}
					_, _ = io.Copy(io.Discard, r.Body)
					if r.URL.Path == "/watched" {
						r.Context().Done()
						return
					}
					close(begun)
					wait(r.Context())
					ended <- r.Context().Err()
				}), nil)
				c := dial(t, s.address)
				for range 2 { // a connection that was watched before is kept, and watched again
					c.send(request("/watched", body))
					if answer := c.answer(); answer != "200 OK\nContent-Length: 0\r\nclose: false\n" {
						t.Fatalf("got %s", answer)
					}
				}
				c.send(request("/", body))
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

// TestBodyIsNotWatched tests that a handler which listens for the end of the context before it reads the body gets all of
// the body: the connection is watched only from its end on.
func TestBodyIsNotWatched(t *testing.T) {
	listens := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Context().Done()
		time.Sleep(10 * time.Millisecond) // so that a goroutine that would watch the connection waits for its next byte
		listens <- struct{}{}
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v", body, err)
	}), func(c *Config) { c.BodyTime = 10 * time.Second })
	c := dial(t, s.address)
	head, body, _ := strings.Cut(request("/", "hello"), "hello")
	c.send(head)
	<-listens
	c.send("hello" + body)
	if answer := c.answer(); !strings.HasSuffix(answer, "\nhello <nil>") {
		t.Errorf("got %s", answer)
	}
}

// TestManyRequestsAhead tests that requests are answered whose contexts are listened to while many later requests have arrived.
func TestManyRequestsAhead(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Context().Done()
		_, _ = io.WriteString(w, r.URL.Path)
	}), nil)
	c := dial(t, s.address)
	const many = 300
	go func() { _, _ = io.WriteString(c, strings.Repeat(request("/next", "hello"), many)) }()
	for i := range many {
		if answer := c.answer(); !strings.HasSuffix(answer, "\n/next") {
			t.Fatalf("request %d: got %s", i, answer)
		}
	}
}

// TestContextEndsWithItsRequest tests contexts that are kept beyond their request, while the connection stays.
func TestContextEndsWithItsRequest(t *testing.T) {
	for _, arm := range []bool{false, true} {
		kept := make(chan context.Context, 1)
		s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			if arm {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				t.Cleanup(cancel)
			}
			kept <- ctx
		}), nil)
		c := dial(t, s.address)
		c.send(request("/", "not read"))
		c.answer()
		ctx := <-kept
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("armed %v: error %v", arm, err)
		}
		select {
		case <-ctx.Done():
		default:
			t.Errorf("armed %v: the context has not ended", arm)
		}
	}
}
