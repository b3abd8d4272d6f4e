package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// operator is the operator's listener. It exposes internals, and profiles cost time, so it
// must not be public:
//
//	GET /healthz        200 while the process is running
//	GET /readyz         200 with the networks that are left out, or 503 with the reason
//	GET /metrics        for Prometheus
//	GET /debug/pprof/   Go's profiles
type operator struct {
	listener net.Listener
	service  *Service
}

func listenOperator(ctx context.Context, address string, s *Service) (*operator, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("operator's listener: %w (want another address: the entry operator)", err)
	}
	return &operator{listener, s}, nil
}

func (o *operator) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := o.service.handler.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
		for _, u := range o.service.Unserved(r.Context()) {
			fmt.Fprintln(w, u)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.service.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelError)}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// run serves until ctx is done. When it returns, no request is in progress, so what
// requests read can be closed.
func (o *operator) run(ctx context.Context) error {
	var running sync.RWMutex // held for reading by each request
	stopped := false
	handler := o.handler()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.RLock()
			defer running.RUnlock()
			if !stopped {
				handler.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends a running profile
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	slog.Info("serving operators", "address", o.listener.Addr().String())
	err := server.Serve(o.listener)
	running.Lock() // waits for all requests
	stopped = true
	running.Unlock()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("operator's listener: %w", err)
	}
	return nil
}
