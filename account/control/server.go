package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	maxBody    = 16 << 20         // bytes of a request; one about usage names all keys that there ever were
	ioTime     = 10 * time.Second // for reading a request, and for writing a response; not for what is between
	drainTime  = 5 * time.Second  // for requests in progress when the server stops
	formatJSON = "application/json"
)

// Server serves the socket of a data directory.
type Server struct {
	service   Service
	process   Process
	directory *directory
	listener  net.Listener
	io        time.Duration // ioTime
}

// Process is what the process that has a data directory open does for clients besides
// the operations of a Service.
type Process struct {
	// Status returns a value that is sent as JSON.
	Status func(context.Context) (any, error)
	// Checkpoint makes copies of open stores. release removes them.
	Checkpoint func(context.Context, Copying) (made []Checkpoint, release func() error, err error)
	// AddNetwork begins to serve a stored network.
	AddNetwork func(ctx context.Context, name string) error
	// LendNetwork takes a network out of service and closes it. It returns ErrNotServed if
	// the network is not served. release serves the network again, unless its context is
	// done.
	LendNetwork func(ctx context.Context, what Borrowing) (b Borrowed, release func(context.Context) error, err error)
}

// ErrInUse means that another server has its control socket in the data directory.
var ErrInUse = errors.New("another server has its control socket there")

// Listen creates the socket in the data directory dir, which is locked until Run has returned. So two servers never listen
// in one directory, also if their stores are elsewhere, and a socket found there was left by a dead process.
func Listen(dir string, service Service, process Process) (*Server, error) {
	d, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := d.listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), d.Close())
	}
	return &Server{service: service, process: process, directory: d, listener: l, io: ioTime}, nil
}

// Run serves requests until ctx is done, then removes the socket. It must be called once.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler(ctx),
		ReadTimeout:       s.io,
		ReadHeaderTimeout: s.io,
		IdleTimeout:       s.io,
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

// handler returns the handler of all operations. Loans end at the latest when ctx is done.
func (s *Server) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	makeCheckpoint.serve(ctx, mux, func(ctx context.Context, what Copying) ([]Checkpoint, func(context.Context) error, error) {
		made, release, err := s.process.Checkpoint(ctx, what)
		return made, func(context.Context) error { return release() }, err
	})
	serveKeys(mux, s.service.Keys, s.service.Usage)
	serveAccounts(mux, s.service.Accounts)
	serveTeams(mux, s.service.Accounts)
	addNetwork.serve(mux, func(ctx context.Context, in networkRequest) (nothing, error) {
		return nothing{}, s.process.AddNetwork(ctx, in.Network)
	})
	readDashboard.serve(mux, func(ctx context.Context, _ nothing) (string, error) { return s.service.Dashboard(ctx) })
	borrowNetwork.serve(ctx, mux, func(ctx context.Context, what Borrowing) (Borrowed, func(context.Context) error, error) {
		return s.process.LendNetwork(ctx, what)
	})
	readStatus.serve(mux, func(ctx context.Context, _ nothing) (json.RawMessage, error) {
		status, err := s.process.Status(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(status)
	})
	return mux
}
