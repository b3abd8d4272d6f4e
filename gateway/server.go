package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// DefaultDrainTime is how long a Server that is to stop waits for requests under
// way, where nothing else is set.
const DefaultDrainTime = 20 * time.Second

const (
	headerTime     = 10 * time.Second  // to send a request's headers
	bodyTime       = 60 * time.Second  // to send all of a request
	writeTime      = 120 * time.Second // to take an answer
	idleTime       = 120 * time.Second // between two requests of a connection
	maxHeaderBytes = 64 << 10
)

// ListenConfig is where and how a Server listens.
type ListenConfig struct {
	Address string // a TCP address, such as 127.0.0.1:8545
	// Listener is one that was opened before; nil: Address is opened. It is the Server's.
	Listener net.Listener
	// TLS is how connections are encrypted; nil: not at all.
	TLS *tls.Config
	// Drain bounds how long Run waits for requests under way before it cuts them off;
	// 0: DefaultDrainTime.
	Drain time.Duration
	// Connections is how many may be open at once; 0: DefaultConnections. Those beyond
	// are closed as soon as they come.
	Connections int
	// ConnectionsEach is how many of them may come from one address, or one /64 network of
	// IPv6, that is not a trusted proxy's; 0: no limit. DefaultConnectionsEach does not
	// hold for loopback addresses.
	ConnectionsEach int
	Proxies         []netip.Prefix
}

// DefaultConnections is a ListenConfig's if nothing else is set, and
// DefaultConnectionsEach what a server should have.
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

	// running is held for reading by each request under way. Shutting down is not
	// enough to know of their end where they outlast the drain time.
	running sync.RWMutex
	stopped bool // guarded by running: no request may begin
}

// Listen opens a TCP address for h, where it is not open yet. Unless Run is called the
// server must be closed.
func Listen(ctx context.Context, config ListenConfig, h *Handler) (*Server, error) {
	inner := config.Listener
	if inner == nil {
		var err error
		if inner, err = new(net.ListenConfig).Listen(ctx, "tcp", config.Address); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}
	if config.Drain == 0 {
		config.Drain = DefaultDrainTime
	}
	if config.Connections == 0 {
		config.Connections = DefaultConnections
	}
	listener := &boundedListener{
		Listener: inner, most: config.Connections, mostEach: config.ConnectionsEach, trusted: config.Proxies,
		byAddress: make(map[netip.Addr]int),
		onDropped: func() { h.log.Warn("dropping connections: there are too many", "address", inner.Addr().String()) },
	}
	return &Server{handler: h, listener: listener, tls: config.TLS, drain: config.Drain}, nil
}

// Connections says how many are open, and how many were closed because there were
// too many.
func (s *Server) Connections() (open int, dropped uint64) {
	return s.listener.connections(), s.listener.dropped.Load()
}

// Addr is the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done. Then it takes no more requests, and returns when all
// under way have been answered, or have been cut off after the drain time, which
// is an error. When it returns no method is running any more. It must be called
// at most once.
func (s *Server) Run(ctx context.Context) error {
	log := s.handler.log
	// Requests go on while ctx is done, until the drain time is over.
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	server := &http.Server{
		Handler:           s,
		TLSConfig:         s.tls,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConn,
		ConnState:         watchIdle,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      MaxRequestTime + writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(newQuietLog(log.Handler()), slog.LevelWarn),
	}
	log.Info("serving", "address", s.Addr().String(), "networks", s.handler.current.Load().networks.names())
	var looking sync.WaitGroup
	looking.Go(func() { s.handler.sockets.run(base) })
	defer looking.Wait()
	served := make(chan error, 1)
	go func() { served <- s.accept(server) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("gateway: serve %s: %w", s.Addr(), err)
		err = errors.Join(err, server.Close())
	case <-ctx.Done():
		err = s.shutdown(ctx, server)
		<-served
	}
	cutOff()
	s.running.Lock() // waits for every request that is still under way
	s.stopped = true
	s.running.Unlock()
	log.Info("stopped serving", "address", s.Addr().String())
	return err
}

// accept serves connections until the server is shut down.
func (s *Server) accept(server *http.Server) error {
	if s.tls != nil {
		return server.ServeTLS(s.listener, "", "") // the certificates are in its configuration
	}
	return server.Serve(s.listener)
}

// shutdown lets requests end, but for no longer than the drain time.
func (s *Server) shutdown(ctx context.Context, server *http.Server) error {
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { return s.handler.sockets.drain(drain) })
	group.Go(func() error { return server.Shutdown(drain) }) // does not know of WebSockets
	err := group.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("gateway: requests were still under way after %v and were cut off", s.drain), server.Close())
	}
	return err
}

// ServeHTTP implements http.Handler: the Handler's, counted.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.stopped {
		s.handler.refuse(w, unavailable(RefusedBusy, "the server is stopping: try again later"))
		return
	}
	s.handler.ServeHTTP(w, r)
}
