package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"ashlar/gateway/http1"

	"golang.org/x/sync/errgroup"
)

const (
	headerTime = 10 * time.Second  // for a client to send headers
	bodyTime   = 60 * time.Second  // for a client to send a whole request
	writeTime  = 120 * time.Second // for a client to read an answer
	idleTime   = 120 * time.Second // between two requests of a connection

	// maxHeaderBytes is the maximum size of a request's header, to which net/http adds 4 KiB. Nothing
	// counts its memory, which may be 16 times as much: a field of six bytes takes about 100. Browsers
	// and proxies send a few KiB.
	maxHeaderBytes = 16 << 10
)

// transport answers the connections of a listener. With TLS, net/http answers all of them.
// Without it, package http1 answers JSON-RPC requests of the usual form, and hands over
// connections on which anything else arrives.
type transport struct {
	listener net.Listener
	unlisten func() error // closes the listener
	full     *http.Server
	plain    *http1.Server // nil with TLS
	handed   *handover     // the listener of full; nil with TLS
}

// newTransport returns the transport of a server. base is the parent of the requests'
// contexts.
func (s *Server) newTransport(base context.Context) *transport {
	log := s.handler.log
	t := &transport{listener: s.listener, unlisten: sync.OnceValue(s.listener.Close), full: &http.Server{
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
		// Without this a client that reads nothing more of its connection keeps it, with all answers
		// for it: the end of a request's write deadline is a frame of the same connection.
		HTTP2:    &http.HTTP2Config{WriteByteTimeout: writeTime},
		ErrorLog: slog.NewLogLogger(newQuietLog(log.Handler()), slog.LevelWarn),
	}}
	if s.tls != nil {
		return t
	}
	t.handed = newHandover(s.Addr())
	t.plain = http1.New(http1.Config{
		Handler:   s,
		Accepts:   isCall,
		HandOver:  t.handed.take,
		Context:   func(conn net.Conn) context.Context { return withConn(base, conn) },
		Log:       log,
		HeadTime:  headerTime,
		BodyTime:  bodyTime,
		WriteTime: writeTime, // from the first byte of an answer on; in net/http from the request's head on
		IdleTime:  idleTimeOf,
	})
	return t
}

// isCall reports whether a path is one of JSON-RPC over HTTP.
func isCall(path string) bool {
	route, isRPC := parseRoute(path)
	return isRPC && !route.socket
}

// idleTimeOf returns how long a connection may be idle.
func idleTimeOf(conn net.Conn) time.Duration {
	if counted := countedBelow(conn); counted != nil && !counted.kept.Load() {
		return anonymousIdle
	}
	return idleTime
}

// serve serves connections until the transport is shut down.
func (t *transport) serve() error {
	if t.plain == nil {
		return t.full.ServeTLS(t.listener, "", "") // TLSConfig has the certificates
	}
	handed := make(chan error, 1)
	go func() { handed <- t.full.Serve(t.handed) }()
	err := t.plain.Serve(t.listener)
	_ = t.handed.Close()
	<-handed
	return err
}

// shutdown closes idle connections and waits until those in use have ended their current
// request, or ctx is done.
func (t *transport) shutdown(ctx context.Context) error {
	if t.plain == nil {
		return t.full.Shutdown(ctx)
	}
	err := t.unlisten()
	var group errgroup.Group
	group.Go(func() error { return t.plain.Shutdown(ctx) })
	group.Go(func() error { return t.full.Shutdown(ctx) })
	return errors.Join(err, group.Wait())
}

// close closes all connections.
func (t *transport) close() error {
	if t.plain == nil {
		return t.full.Close()
	}
	t.plain.Close()
	return errors.Join(t.unlisten(), t.full.Close())
}
