package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"ashlar/jsonrpc"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// bodyBytes bounds a request: a block has at most 10 MiB since Osaka, hexadecimal
	// takes twice that, and larger ones before did not get beyond 15 MiB.
	bodyBytes = 32 << 20
	// bodiesAtOnce is how many requests are held and answered at a time. A client
	// makes one or two.
	bodiesAtOnce = 8
	// bodyTime is how long a request may take to arrive.
	bodyTime = 30 * time.Second
	// answerTime is how long a call may run. A client waits for eight seconds and then
	// asks again; a call that goes on has the answer ready for that.
	answerTime = time.Minute
	// writeTime is for the answer to leave, from when the request began to arrive.
	writeTime = bodyTime + answerTime + 30*time.Second
	// drainTime is for calls under way when the server stops.
	drainTime = 5 * time.Second
	// refusalsEvery is how often a refused request is logged: anybody can make some.
	refusalsEvery = 10 * time.Second
)

// Server is the listener for a consensus client.
type Server struct {
	listener net.Listener
	secret   Secret
	rpc      *jsonrpc.Server
	places   chan struct{} // taken by requests that are held
	log      *slog.Logger
	refusals rate.Sometimes // that are logged
	now      func() time.Time
}

// ServerConfig is what a server is made of.
type ServerConfig struct {
	Address string
	Secret  Secret
	// Methods are those of the [API] and those that a consensus client asks beside them.
	Methods jsonrpc.Handlers
	RPC     jsonrpc.Config
	Log     *slog.Logger
}

// Listen opens the listener. Whoever comes waits until the server is run.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("consensus client's listener: %w", err)
	}
	return &Server{
		listener: listener, secret: c.Secret, rpc: jsonrpc.NewServer(c.Methods, c.RPC),
		places: make(chan struct{}, bodiesAtOnce), log: c.Log, refusals: rate.Sometimes{Interval: refusalsEvery}, now: time.Now,
	}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a server that is not run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done, and then answers what is under way.
func (s *Server) Run(ctx context.Context) error {
	// Calls outlive the connections that they came by, but not the server.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(calls, w, r) }),
		// Nobody who has no token gets to send more than this.
		ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		ReadTimeout: bodyTime, WriteTimeout: writeTime, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.log.Info("serving a consensus client", "address", s.listener.Addr().String())
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("consensus client's listener: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-inner.Done()
		drain, done := context.WithTimeout(calls, drainTime)
		defer done()
		if server.Shutdown(drain) == nil {
			return nil
		}
		cancel()
		return server.Shutdown(context.WithoutCancel(ctx)) // calls return soon now
	})
	return group.Wait()
}

// serve answers one HTTP request. calls ends with the server.
func (s *Server) serve(calls context.Context, w http.ResponseWriter, r *http.Request) {
	if err := s.secret.check(r.Header.Get("Authorization"), s.now()); err != nil {
		s.refusals.Do(func() {
			s.log.Warn("request without a valid token refused", "from", r.RemoteAddr, "error", err)
		})
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST with a JSON-RPC request", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(calls, answerTime)
	defer cancel()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body could not be read: "+err.Error(), status)
		return
	}
	answer := s.rpc.Answer(ctx, body, nil)
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil {
		s.log.Debug("an answer was not taken", "to", r.RemoteAddr, "error", err)
	}
}
