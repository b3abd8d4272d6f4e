package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// DefaultDrainTime is how long a stopping Server waits for requests in progress, by
// default.
const DefaultDrainTime = 20 * time.Second

// ListenConfig says where and how a Server listens.
type ListenConfig struct {
	Address string // a TCP address, such as 127.0.0.1:8545
	// Listener is an open listener to use instead of Address, or nil. The Server closes it.
	Listener net.Listener
	// TLS configures encryption; nil means none.
	TLS *tls.Config
	// Drain bounds how long Run waits for requests in progress before it aborts them; 0:
	// DefaultDrainTime.
	Drain time.Duration
	// Connections is the maximum number of open connections; 0: DefaultConnections. Further
	// ones are closed at once. A request over HTTP/2 counts like a connection.
	Connections int
	// ConnectionsEach is the maximum number of connections from one address, or one /64
	// network of IPv6, except from the handler's Proxies; 0: no limit. If it is
	// DefaultConnectionsEach, it does not apply to loopback addresses.
	ConnectionsEach int
}

// DefaultConnections is the default of ListenConfig.Connections. DefaultConnectionsEach is
// the recommended ConnectionsEach.
const (
	DefaultConnections     = 30_000
	DefaultConnectionsEach = 2000
)

// Server serves a Handler on a listener.
type Server struct {
	handler  *Handler
	listener *boundedListener
	tls      *tls.Config
	drain    time.Duration

	// running is read-locked by each request in progress. http.Server.Shutdown alone does
	// not wait for requests that outlast the drain time.
	running sync.RWMutex
	stopped bool // guarded by running: new requests are refused
}

// Listen opens the TCP address of h's server, unless a listener is given. The server must
// be closed unless Run is called.
func Listen(ctx context.Context, config ListenConfig, h *Handler) (*Server, error) {
	inner := config.Listener
	if inner == nil {
		var err error
		if inner, err = new(net.ListenConfig).Listen(ctx, "tcp", config.Address); err != nil {
			return nil, fmt.Errorf("public listener: %w", err)
		}
	}
	if config.Drain == 0 {
		config.Drain = DefaultDrainTime
	}
	if config.Connections == 0 {
		config.Connections = DefaultConnections
	}
	listener := &boundedListener{
		Listener: inner, most: config.Connections, maxEach: config.ConnectionsEach,
		trusted:   func() proxies { return h.current.Load().proxies },
		byAddress: make(map[netip.Addr]int),
		onDropped: func() { h.log.Warn("dropping connections: there are too many", "address", inner.Addr().String()) },
	}
	return &Server{handler: h, listener: listener, tls: config.TLS, drain: config.Drain}, nil
}

// Connections returns how many connections are open, and how many were dropped because of
// the limits.
func (s *Server) Connections() (open int, dropped uint64) {
	return s.listener.connections(), s.listener.dropped.Load()
}

// Addr returns the listening address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done. Then it refuses new requests and waits for those in
// progress; it aborts those that outlast the drain time, which is an error. When Run
// returns, no method is running. It must be called at most once.
func (s *Server) Run(ctx context.Context) error {
	log := s.handler.log
	// Requests continue after ctx is done, until the drain time has passed.
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	transport := s.newTransport(base)
	log.Info("serving", "address", s.Addr().String(), "networks", s.handler.current.Load().networks.names())
	var looking sync.WaitGroup
	looking.Go(func() { s.handler.sockets.run(base) })
	defer looking.Wait()
	served := make(chan error, 1)
	go func() { served <- transport.serve() }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("gateway: serve %s: %w", s.Addr(), err)
		err = errors.Join(err, transport.close())
	case <-ctx.Done():
		err = s.shutdown(ctx, transport)
		<-served
	}
	cutOff()
	s.running.Lock() // waits for every request in progress
	s.stopped = true
	s.running.Unlock()
	s.handler.sockets.workers.close()
	log.Info("stopped serving", "address", s.Addr().String())
	return err
}

// shutdown waits for requests in progress, at most for the drain time.
func (s *Server) shutdown(ctx context.Context, t *transport) error {
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { return s.handler.sockets.drain(drain) })
	group.Go(func() error { return t.shutdown(drain) }) // ignores WebSockets
	err := group.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("gateway: requests were still in progress after %v and were aborted", s.drain), t.close())
	}
	return err
}

// ServeHTTP implements http.Handler. It counts requests in progress around the Handler's
// ServeHTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.stopped {
		s.handler.refuse(w, unavailable(RefusedBusy, "the server is stopping: try again later"), readRequestID(w, r))
		return
	}
	if r.ProtoMajor == 2 {
		s.serveStream(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// serveStream answers a request over HTTP/2. It is counted until the client has taken the answer:
// net/http would send a short one only after this, and keep it for as long as the client likes.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	if conn := connOf(r); conn != nil {
		if !s.listener.enterRequest(conn.peer) {
			panic(http.ErrAbortHandler) // resets the stream, without an answer that the client may not take
		}
		defer s.listener.leaveRequest(conn.peer)
	}
	w = &streamWriter{w, r.Body}
	s.handler.ServeHTTP(w, r)
	to := http.NewResponseController(w)
	_ = to.SetWriteDeadline(time.Now().Add(writeTime)) // if this fails, the server's own limit applies
	_ = to.Flush()                                     // fails if the client has disconnected
}

// streamWriter writes the answer to a request over HTTP/2. net/http keeps up to 1 MiB of a body that
// no handler reads, until the client has taken the answer. So what has not been read when the answer
// begins is dropped.
type streamWriter struct {
	http.ResponseWriter
	body io.Closer
}

// WriteHeader implements http.ResponseWriter.
func (w *streamWriter) WriteHeader(status int) {
	_ = w.body.Close() // cannot fail
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *streamWriter) Write(p []byte) (int, error) {
	_ = w.body.Close() // cannot fail
	return w.ResponseWriter.Write(p)
}

// Unwrap is used by http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
