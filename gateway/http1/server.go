package http1

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how a [Server] answers. All fields are required.
type Config struct {
	// Handler answers plain requests. After it has returned, it must use neither the request
	// nor its header, URL and body. An answer of more than 4 KiB needs a Content-Length.
	Handler http.Handler
	// Accepts reports whether requests for a path may be answered here. Others are handed
	// over.
	Accepts func(path string) bool
	// HandOver takes over a connection, with the bytes that were read from it. It must not
	// keep the slice.
	HandOver func(conn net.Conn, read []byte)
	// Context returns the context of all requests of a connection.
	Context func(net.Conn) context.Context
	Log     *slog.Logger

	HeadTime  time.Duration                // for a client to send a head, and to begin with the first one
	BodyTime  time.Duration                // for a client to send the rest of a request
	WriteTime time.Duration                // for a client to read an answer, unless the handler sets a deadline
	IdleTime  func(net.Conn) time.Duration // between two requests of a connection
}

// Server answers plain requests of the connections of a listener.
type Server struct {
	Config
	stopping atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{} // guarded by mu: those that are served here
	empty chan struct{}      // guarded by mu: closed when conns is empty, once stopping; nil before
}

// New returns a server.
func New(config Config) *Server {
	return &Server{Config: config, conns: make(map[*conn]struct{})}
}

// longestPause is the longest pause after an error of Accept, such as that there are too many
// open files.
const longestPause = time.Second

// Serve accepts connections until the listener is closed or the server is stopped. It may
// return while connections are served.
func (s *Server) Serve(listener net.Listener) error {
	pause := 5 * time.Millisecond
	for {
		inner, err := listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.start(inner)
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			s.Log.Warn("cannot accept a connection: trying again", "error", err, "again_in", pause)
			time.Sleep(pause)
			pause = min(2*pause, longestPause)
		}
	}
}

// start serves a connection in a goroutine of its own.
func (s *Server) start(inner net.Conn) {
	c := newConn(s, inner)
	s.mu.Lock()
	stopping := s.stopping.Load()
	if !stopping {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if stopping {
		_ = inner.Close()
		return
	}
	go func() {
		defer s.forget(c)
		c.serve()
	}()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.empty != nil && len(s.conns) == 0 {
		close(s.empty)
	}
}

// Shutdown closes idle connections and waits until those in use have ended their current
// request, or ctx is done. The caller closes the listener before. It may be called once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping.Store(true)
	s.empty = make(chan struct{})
	if len(s.conns) == 0 {
		close(s.empty)
	}
	for c := range s.conns {
		if c.state.CompareAndSwap(stateIdle, stateClosed) {
			_ = c.net.Close()
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections that are served here. It does not wait for their handlers.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping.Store(true)
	for c := range s.conns {
		_ = c.net.Close()
	}
}
