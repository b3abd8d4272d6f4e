package http1

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// piped serves the end of a pipe, in a bubble of synctest, and returns the client's end.
func piped(t *testing.T, h http.HandlerFunc, change func(*Config)) (*Server, net.Conn) {
	inner, outer := net.Pipe()
	config := Config{
		Handler: h, Accepts: func(path string) bool { return path != "/full" }, Log: slog.New(slog.DiscardHandler),
		Context:  func(net.Conn) context.Context { return t.Context() },
		HeadTime: 10 * time.Second, BodyTime: time.Minute, WriteTime: time.Minute,
		IdleTime: func(net.Conn) time.Duration { return time.Minute },
	}
	if change != nil {
		change(&config)
	}
	s := New(config)
	s.start(inner)
	return s, outer
}

// TestTimeForAHead tests that a client has ten seconds for a head from its first byte on, in whichever pieces it sends it, and
// that the last request is not answered again when that time is over.
func TestTimeForAHead(t *testing.T) {
	for _, c := range []struct {
		name  string
		first string // sent at once
		rest  string // sent byte by byte
		every time.Duration
		want  time.Duration
	}{
		{"of the first request", "P", "OST /e HTTP/1.1", 4 * time.Second, 12 * time.Second},
		{"of a later one", request("/", "") + "P", "OST /e HTTP/1.1", 4 * time.Second, 12 * time.Second},
		{"of a later one after a while", request("/", ""), "POST /e", 50 * time.Second, 100 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				_, outer := piped(t, func(http.ResponseWriter, *http.Request) { calls++ }, nil)
				go func() { _, _ = io.Copy(io.Discard, outer) }()
				begun := time.Now()
				_, err := io.WriteString(outer, c.first)
				for rest := c.rest; err == nil; rest = rest[1:] {
					time.Sleep(c.every)
					_, err = io.WriteString(outer, rest[:1])
				}
				if lasted := time.Since(begun); lasted != c.want {
					t.Errorf("the client can send for %v, expected %v", lasted, c.want)
				}
				if want := strings.Count(c.first, "HTTP/1.1"); calls != want {
					t.Errorf("%d requests are answered, expected %d", calls, want)
				}
			})
		})
	}
}

// TestTimesEndWithTheirPhase tests that the time for a head limits neither a connection that is handed over nor a request that
// watches whether the client disconnects.
func TestTimesEndWithTheirPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handed := make(chan error, 1)
		_, outer := piped(t, nil, func(c *Config) {
			c.HandOver = func(conn net.Conn, _ []byte) {
				_, err := conn.Read(make([]byte, 1))
				handed <- err
			}
		})
		_, _ = io.WriteString(outer, request("/full", ""))
		time.Sleep(time.Minute)
		_, _ = io.WriteString(outer, "x")
		if err := <-handed; err != nil {
			t.Errorf("a connection that was handed over a minute before: %v", err)
		}
		_ = outer.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		_, outer := piped(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				t.Error("the context ends while the client waits")
			case <-time.After(time.Hour):
			}
		}, nil)
		go func() { _, _ = io.WriteString(outer, request("/", "")) }()
		if _, err := http.ReadResponse(bufio.NewReader(outer), nil); err != nil {
			t.Error(err)
		}
		_ = outer.Close()
	})
}

// TestShutdownDuringAnAnswer tests that a connection ends with its answer if the server is stopped after the answer's head was
// sent, which cannot say so any more.
func TestShutdownDuringAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, outer := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "be")
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "un")
		}, nil)
		go func() { _, _ = io.WriteString(outer, request("/", "")) }()
		answer := make(chan string)
		go func() {
			all, _ := io.ReadAll(outer) // up to the end of the connection
			answer <- string(all)
		}()
		synctest.Wait()
		stopped := make(chan error)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() { stopped <- s.Shutdown(ctx) }()
		synctest.Wait()
		close(release)
		if err := <-stopped; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if got := <-answer; !strings.HasSuffix(got, "\r\n\r\nbeun") || strings.Count(got, "Content-Length") != 1 || strings.Contains(got, "Connection") {
			t.Errorf("got %q", got)
		}
		inner, late := net.Pipe() // accepted before the listener was closed
		s.start(inner)
		if n, err := late.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection that begins while the server stops: %d bytes, %v, expected EOF", n, err)
		}
	})
}

// TestClose tests that connections in use end, too.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, outer := piped(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil)
		_, _ = io.WriteString(outer, request("/", ""))
		s.Close()
		if _, err := outer.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read after Close: %v, expected EOF", err)
		}
		inner, late := net.Pipe()
		closed := time.Now()
		s.start(inner)
		if _, err := late.Read(make([]byte, 1)); err != io.EOF || time.Since(closed) > 0 {
			t.Errorf("a connection that begins after Close: %v after %v, expected EOF at once", err, time.Since(closed))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown after Close: %v", err)
		}
	})
}

// failing is a listener whose Accept returns given errors, nil for a connection.
type failing struct {
	net.Listener
	errors []error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.errors[0]
	l.errors = l.errors[1:]
	if err != nil {
		return nil, err
	}
	inner, outer := net.Pipe()
	_ = outer.Close()
	return inner, nil
}

// TestAcceptFails tests that a server which cannot accept for a while, such as for too many open files, tries again, and how
// long it pauses.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Context: func(net.Conn) context.Context { return t.Context() }, HeadTime: time.Minute, Log: slog.New(slog.DiscardHandler)})
		var fails []error
		for range 10 {
			fails = append(fails, syscall.EMFILE)
		}
		begun := time.Now()
		if err := s.Serve(&failing{errors: append(fails, nil, syscall.EMFILE, net.ErrClosed)}); err != net.ErrClosed {
			t.Errorf("error %v", err)
		}
		want := (5+10+20+40+80+160+320+640+1000+1000)*time.Millisecond + 5*time.Millisecond
		if paused := time.Since(begun); paused != want {
			t.Errorf("the server pauses for %v, expected %v", paused, want)
		}
	})
}

// TestClosedWhileIdle tests that a request which arrives while the server closes its idle connection is not answered: the
// client learns that the connection has ended, and sends the request again.
func TestClosedWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, outer := net.Pipe()
		c := newConn(New(Config{
			Handler:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request is answered") }),
			Accepts:  func(string) bool { return true },
			Context:  func(net.Conn) context.Context { return t.Context() },
			HeadTime: time.Minute, BodyTime: time.Minute, WriteTime: time.Minute,
			IdleTime: func(net.Conn) time.Duration { return time.Minute },
		}), inner)
		c.state.Store(stateClosed) // as Shutdown does, which then closes the connection
		go func() { _, _ = io.Copy(io.Discard, outer) }()
		go func() { _, _ = io.WriteString(outer, request("/", "")) }()
		c.serve()
	})
}
