package limit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// Users counts the users of something, so that it can be closed once it has none. The zero
// value admits users.
type Users struct {
	n atomic.Int64 // users; less usersClosed while closing

	mu   sync.Mutex
	none chan struct{} // guarded by mu: not nil while closing; closed when there are no users
	left bool          // guarded by mu: none is closed
}

const usersClosed = math.MaxInt64 / 2

// Enter adds a user, who must leave. It returns false while the thing is closing.
func (u *Users) Enter() bool {
	if u.n.Add(1) > 0 {
		return true
	}
	u.Leave()
	return false
}

// Leave removes a user.
func (u *Users) Leave() {
	if u.n.Add(-1) == -usersClosed {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.look()
	}
}

// look closes none if there are no users. u.mu must be held.
func (u *Users) look() {
	if u.none != nil && !u.left && u.n.Load() == -usersClosed {
		u.left = true
		close(u.none)
	}
}

// Close admits no further users and waits until all have left. If ctx is done first, it
// returns its error and admits users again. It must not be called twice at once.
func (u *Users) Close(ctx context.Context) error {
	u.mu.Lock()
	u.none, u.left = make(chan struct{}), false
	u.n.Add(-usersClosed)
	u.look()
	none := u.none
	u.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.none = nil
	u.n.Add(usersClosed)
	return ctx.Err()
}
