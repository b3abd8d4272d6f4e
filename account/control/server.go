package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"ashlar/account"
)

const (
	maxBody    = 64 << 10
	ioTime     = 10 * time.Second // for reading a request, and for writing an answer
	drainTime  = 5 * time.Second  // for requests under way when the server is to stop
	formatJSON = "application/json"
)

// Server answers on the socket of a data directory.
type Server struct {
	keys      Keys
	status    func(context.Context) (any, error)
	directory *directory
	listener  net.Listener
}

// Listen makes the socket in the data directory dir. The caller has the store in
// dir open, and keeps it so until Run has returned: that is how no two servers
// listen in one directory, and why a socket found there is a dead process's. What
// status returns is sent as JSON to who asks for it.
func Listen(dir string, keys Keys, status func(context.Context) (any, error)) (*Server, error) {
	d, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := d.listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), d.Close())
	}
	return &Server{keys: keys, status: status, directory: d, listener: l}, nil
}

// Run answers until ctx is done, and removes the socket. It must be called once.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadTimeout:       ioTime,
		ReadHeaderTimeout: ioTime,
		WriteTimeout:      2 * ioTime,
		IdleTimeout:       ioTime,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		err = server.Shutdown(drain)
		cancel()
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		<-served
	}
	if err := errors.Join(err, s.directory.remove(), s.directory.Close()); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /keys", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(in account.NewKey) (account.Issued, error) { return s.keys.Create(r.Context(), in) })
	})
	mux.HandleFunc("POST /keys/revoke", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(in revokeRequest) (account.Key, error) { return s.keys.Revoke(r.Context(), in.Key) })
	})
	mux.HandleFunc("POST /keys/restrict", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(in restrictRequest) (account.Key, error) { return s.keys.Restrict(r.Context(), in.Key, in.Rules) })
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		keys, err := s.keys.List(r.Context())
		write(w, keys, err)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		status, err := s.status(r.Context())
		write(w, status, err)
	})
	return mux
}

// answer decodes a request's body, does what it asks for and writes the outcome.
func answer[In, Out any](w http.ResponseWriter, r *http.Request, do func(In) (Out, error)) {
	var in In
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	body.DisallowUnknownFields()
	if err := body.Decode(&in); err != nil {
		write(w, nil, fmt.Errorf("the request's body: %w", err))
		return
	}
	out, err := do(in)
	write(w, out, err)
}

func write(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", formatJSON)
	switch {
	case errors.Is(err, account.ErrNoKey):
		w.WriteHeader(http.StatusNotFound)
	case errors.Is(err, account.ErrAmbiguous):
		w.WriteHeader(http.StatusConflict)
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	}
	if err != nil {
		out = errorAnswer{err.Error()}
	}
	// What cannot be written has no reader any more.
	_ = json.NewEncoder(w).Encode(out)
}
