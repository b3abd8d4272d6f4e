package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Close waits for users, and admits none.
func TestUsers(t *testing.T) {
	var u Users
	for range 2 {
		if !u.Enter() {
			t.Fatal("no user is admitted before Close")
		}
	}
	u.Leave()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.Close(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("close with a user: %v", err)
	}
	if !u.Enter() {
		t.Error("no user is admitted after Close was interrupted")
	}
	closing, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	closed := make(chan error)
	go func() { closed <- u.Close(closing) }()
	for u.Enter() { // until Close has begun
		u.Leave()
	}
	u.Leave()
	u.Leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if u.Enter() {
		t.Error("a user is admitted after Close")
	}
	if err := new(Users).Close(t.Context()); err != nil {
		t.Errorf("close without users: %v", err)
	}
}

// After Close nothing is in use, however users come and go meanwhile.
func TestUsersTogether(t *testing.T) {
	var u Users
	var closed atomic.Bool
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for u.Enter() {
				if closed.Load() {
					t.Error("in use after Close")
				}
				u.Leave()
			}
		})
	}
	if err := u.Close(t.Context()); err != nil {
		t.Error(err)
	}
	closed.Store(true)
	group.Wait()
}
