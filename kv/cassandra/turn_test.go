package cassandra

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"ashlar/kv"
)

// A write waits while another one renews the lease. It waits as long as its context allows, and not for a lease that the other
// one has found to be lost.
func TestWaitForRenewal(t *testing.T) {
	s := &Store{cluster: &Cluster{config: Config{Lease: time.Second}, log: slog.New(slog.DiscardHandler)}}
	s.lease.renewing = newTurn()
	s.lease.began = time.Now().Add(-time.Hour) // it was not renewed since
	if err := s.lease.renewing.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.waitForLease(late); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("after a deadline: %v, expected ErrUnavailable and DeadlineExceeded", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.waitForLease(canceled); !errors.Is(err, context.Canceled) || errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("after the caller has canceled: %v, expected that alone", err)
	}
	waited := make(chan error)
	go func() { waited <- s.waitForLease(t.Context()) }()
	select {
	case err := <-waited:
		t.Fatalf("%v while the lease is renewed, expected that the write waits", err)
	case <-time.After(50 * time.Millisecond):
	}
	lost := kv.ErrFailed
	s.lease.lost.Store(&lost)
	s.lease.renewing.end()
	if err := <-waited; !errors.Is(err, kv.ErrFailed) {
		t.Errorf("after the lease is lost: %v, expected ErrFailed", err)
	}
}
