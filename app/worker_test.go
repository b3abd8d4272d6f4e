package app

import (
	"io"
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/worker"
)

// TestReadyWithoutWorkers: a service that cannot start the processes for scripts says so.
func TestReadyWithoutWorkers(t *testing.T) {
	s := &Service{workers: worker.NewPool(1, "/nonexistent")}
	defer s.workers.Close()
	if err := s.ready(t.Context(), config.Default()); err != nil {
		t.Fatalf("before the first script: %v", err)
	}
	if err := s.workers.Do(t.Context(), "caller", func(io.ReadWriter) error { return nil }); err == nil {
		t.Fatal("a worker was started")
	}
	if err := s.ready(t.Context(), config.Default()); err == nil || !strings.Contains(err.Error(), "processes for clients' scripts: start worker: ") {
		t.Errorf("afterwards: %v", err)
	}
}
