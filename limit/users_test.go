package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// Close waits for users, and admits none.
func TestUsers(t *testing.T) {
	var u Users
	if !u.Enter() || !u.Enter() {
		t.Fatal("an open thing admits no users")
	}
	u.Leave()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.Close(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("close with a user: %v", err)
	}
	if !u.Enter() {
		t.Error("no users are admitted after closing was given up")
	}
	closed := make(chan error)
	go func() { closed <- u.Close(t.Context()) }()
	u.Leave()
	u.Leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if u.Enter() {
		t.Error("a closed thing admits a user")
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
