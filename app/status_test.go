package app

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"ashlar/worker"
)

// TestStatusOfTheRest: the status of a server names what cannot be read, and why, beside the rest.
func TestStatusOfTheRest(t *testing.T) {
	s, _ := served(t, nil)
	defer addUnreadable(s)()
	shown, err := s.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	status := shown.(Status)
	if len(status.Networks) != 1 || !slices.Equal(status.Unreadable, []Unreadable{{"broken", "no node answers"}}) {
		t.Errorf("the status is %+v", status)
	}
	if err := status.Err(); err == nil || err.Error() != "1 of 2 networks cannot be read" {
		t.Error(err)
	}
}

// TestStatusOfTheServer: the status says all that makes /readyz answer 503, whatever the networks are.
func TestStatusOfTheServer(t *testing.T) {
	s, _ := served(t, nil)
	why := errors.New("no node answers")
	s.people.unread.Store(&why)
	defer s.people.unread.Store(nil)
	workers := s.workers
	defer func() { s.workers = workers }()
	s.workers = worker.NewPool(1, "/nonexistent")
	defer s.workers.Close()
	if err := s.workers.Do(t.Context(), "caller", func(io.ReadWriter) error { return nil }); err == nil {
		t.Fatal("a worker was started")
	}
	shown, err := s.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	status := shown.(Status)
	if alert := s.alert(); !strings.HasPrefix(alert, "the server is not ready: accounts: ") {
		t.Errorf("the dashboard says %q", alert)
	}
	if status.AccountsUnread != "no node answers" || !strings.Contains(status.ScriptsProblem, "start worker: ") {
		t.Errorf("the status is %+v", status)
	}
}
