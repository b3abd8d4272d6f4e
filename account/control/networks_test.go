package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/internal/pipes"
)

// TestAddNetworkTakesLong: to open a store may take longer than the server gives a client to send a request, and
// than the client waits for other operations. Neither ends the operation or keeps its answer from the client.
func TestAddNetworkTakesLong(t *testing.T) {
	service, _ := openService(t)
	synctest.Test(t, func(t *testing.T) { // where a busy machine takes no time
		const limit = time.Second
		add := func(ctx context.Context, _ string) error {
			select {
			case <-time.After(3 * limit):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, err := Listen(t.TempDir(), service, Process{AddNetwork: add})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.listener.Close(); err != nil {
			t.Fatal(err)
		}
		line := pipes.Listen()
		s.listener, s.io = line, limit
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		client := &Client{http: &http.Client{Transport: &http.Transport{DialContext: line.DialContext}}, answer: limit}
		if err := client.AddNetwork(t.Context(), "demo"); err != nil {
			t.Error(err)
		}
		client.http.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestInterruptedCommandKeepsItsNetwork: a command that is interrupted still has the store open for a while. The server gets
// the network back when the command has closed the loan, not before.
func TestInterruptedCommandKeepsItsNetwork(t *testing.T) {
	dir := t.TempDir()
	service, _ := openService(t)
	given := make(chan struct{})
	stop := serveProcess(t, dir, service, Process{LendNetwork: func(context.Context, Borrowing) (Borrowed, func(context.Context) error, error) {
		return Borrowed{}, func(context.Context) error { close(given); return nil }, nil
	}})
	defer stop()
	ctx, interrupt := context.WithCancel(t.Context())
	_, loan, err := dial(t, dir).BorrowNetwork(ctx, Borrowing{Network: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	interrupt()
	select {
	case <-given:
		t.Error("given back while the command has the network")
	case <-time.After(200 * time.Millisecond):
	}
	if err := loan.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the network to be given back", given)
}

// TestBorrowingIsInterrupted: a command that is interrupted while the server waits for requests under way gets no network.
func TestBorrowingIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	service, _ := openService(t)
	asked := make(chan struct{})
	stop := serveProcess(t, dir, service, Process{LendNetwork: func(ctx context.Context, _ Borrowing) (Borrowed, func(context.Context) error, error) {
		close(asked)
		<-ctx.Done()
		return Borrowed{}, nil, ctx.Err()
	}})
	defer stop()
	ctx, interrupt := context.WithCancelCause(t.Context())
	go func() { <-asked; interrupt(errors.New("terminated")) }() // SIGTERM has a cause of its own
	if _, _, err := dial(t, dir).BorrowNetwork(ctx, Borrowing{Network: "demo"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// TestBorrowedNetworkIsGivenBack: when a client has closed a loan, the server has a context with which it can
// serve the network again. When it stops instead, that context is done: the network stays closed.
func TestBorrowedNetworkIsGivenBack(t *testing.T) {
	for _, stops := range []bool{false, true} {
		dir := t.TempDir()
		service, _ := openService(t)
		given := make(chan error, 1) // the context's error when the network is given back
		stop := serveProcess(t, dir, service, Process{LendNetwork: func(_ context.Context, what Borrowing) (Borrowed, func(context.Context) error, error) {
			if what.Network != "demo" {
				return Borrowed{}, nil, fmt.Errorf("network %q: %w", what.Network, ErrNotServed)
			}
			return Borrowed{Listed: true}, func(ctx context.Context) error { given <- ctx.Err(); return nil }, nil
		}})
		client := dial(t, dir)
		if _, _, err := client.BorrowNetwork(t.Context(), Borrowing{Network: "other"}); !errors.Is(err, ErrNotServed) {
			t.Errorf("another network: %v, expected %v", err, ErrNotServed)
		}
		borrowed, loan, err := client.BorrowNetwork(t.Context(), Borrowing{Network: "demo"})
		if err != nil || !borrowed.Listed {
			t.Fatalf("%+v, %v", borrowed, err)
		}
		if stops {
			stop()
		}
		_ = loan.Close()
		if err := <-given; (err != nil) != stops {
			t.Errorf("given back with a context whose error is %v, the server stops: %t", err, stops)
		}
		if !stops {
			stop()
		}
	}
}
