package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"ashlar/jsonrpc"
	"ashlar/limit"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// bodyBytes is the maximum size of a request. Since Osaka a block has at most 10 MiB,
	// and hexadecimal doubles that. Blocks before Osaka may be larger, up to 15 MiB.
	bodyBytes = 32 << 20
	// batchCalls and batchBytes limit batches as geth does for consensus clients: Prysm's have up to 1,001 calls.
	batchCalls = 2000
	batchBytes = 250_000_000
	// bodiesAtOnce is the maximum number of concurrent requests. A client sends one or two.
	bodiesAtOnce = 8
	// bodyTime is the timeout for reading a request.
	bodyTime = 30 * time.Second
	// answerTime is the timeout of a call. A client retries after eight seconds. A call
	// that is still running then has the answer ready for a retry.
	answerTime = time.Minute
	// writeTime is the timeout for writing the answer, counted from the start of the request.
	writeTime = bodyTime + answerTime + 30*time.Second
	// drainTime is how long a stopping server waits for running calls.
	drainTime = 5 * time.Second
	// refusalsEvery is the minimum interval between log lines about refused requests,
	// since anybody can send them.
	refusalsEvery = 10 * time.Second
)

// Server is the listener for a consensus client.
type Server struct {
	listener net.Listener
	secret   Secret
	rpc      *jsonrpc.Server
	places   chan struct{} // a semaphore of bodiesAtOnce requests
	log      *slog.Logger
	memory   *limit.Budget  // of answers
	refusals rate.Sometimes // limits the log lines about tokens
	crowds   rate.Sometimes // limits those about memory
	now      func() time.Time

	refused map[Refusal]*atomic.Uint64
}

// Refusal is why a request is refused, as metrics name it.
type Refusal string

// The reasons.
const (
	RefusedToken  Refusal = "token"  // it has no valid one
	RefusedMethod Refusal = "method" // of HTTP
	RefusedBusy   Refusal = "busy"   // too many others run
	RefusedBody   Refusal = "body"   // it is too long, or could not be read
	RefusedMemory Refusal = "memory" // for some of its answers
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	Address string
	Secret  Secret
	// Methods are those of the [API] and the other methods that consensus clients call.
	Methods jsonrpc.Handlers
	RPC     jsonrpc.Config // its limits are set by Listen
	Log     *slog.Logger
}

// Listen opens the listener. Connections wait until [Server.Run] is called.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("consensus client's listener: %w", err)
	}
	c.RPC.BatchCalls, c.RPC.BatchBytes = batchCalls, batchBytes
	c.RPC.AnswerBytes = bodiesBytes + 1 // and the bracket that closes the bodies
	refused := make(map[Refusal]*atomic.Uint64)
	for _, why := range []Refusal{RefusedToken, RefusedMethod, RefusedBusy, RefusedBody, RefusedMemory} {
		refused[why] = new(atomic.Uint64)
	}
	return &Server{
		listener: listener, secret: c.Secret, rpc: jsonrpc.NewServer(counted(c.Methods), c.RPC),
		places: make(chan struct{}, bodiesAtOnce), memory: limit.NewBudget(answersBytes), log: c.Log, refusals: rate.Sometimes{Interval: refusalsEvery}, crowds: rate.Sometimes{Interval: refusalsEvery}, now: time.Now,
		refused: refused,
	}, nil
}

// Refused returns how many requests were refused.
func (s *Server) Refused() map[Refusal]uint64 {
	all := make(map[Refusal]uint64, len(s.refused))
	for why, n := range s.refused {
		all[why] = n.Load()
	}
	return all
}

// Held returns how many bytes of answers are held. Small ones are not counted.
func (s *Server) Held() int64 { return s.memory.Held() }

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done. It then waits up to drainTime for running calls.
func (s *Server) Run(ctx context.Context) error {
	// A call continues after its connection is lost, but ends with the server.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(calls, w, r) }),
		// Limits what a client without a token can send.
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
		return server.Shutdown(context.WithoutCancel(ctx)) // canceled calls return soon
	})
	return group.Wait()
}

// serve answers one HTTP request. calls is canceled when the server ends.
func (s *Server) serve(calls context.Context, w http.ResponseWriter, r *http.Request) {
	if err := s.secret.check(r.Header.Get("Authorization"), s.now()); err != nil {
		s.refused[RefusedToken].Add(1)
		s.refusals.Do(func() {
			s.log.Warn("request without a valid token refused", "from", r.RemoteAddr, "error", err)
		})
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodPost {
		s.refused[RefusedMethod].Add(1)
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
		s.refused[RefusedBusy].Add(1)
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
	if err != nil {
		s.refused[RefusedBody].Add(1)
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body could not be read: "+err.Error(), status)
		return
	}
	answers := &held{lease: limit.Lease{Budget: s.memory, Caller: new(limit.Holding)}}
	defer answers.lease.Release()
	answer := s.rpc.Answer(context.WithValue(ctx, jsonrpc.HolderKey{}, answers), body, nil)
	if answers.crowded {
		s.refused[RefusedMemory].Add(1)
		s.crowds.Do(func() {
			s.log.Warn("consensus client refused: answers of its other requests hold the memory", "held", s.memory.Held())
		})
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil {
		s.log.Debug("an answer was not taken", "to", r.RemoteAddr, "error", err)
	}
}
