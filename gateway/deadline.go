package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlineContext is what context.WithTimeout makes, but its timer is started only
// when somebody waits for Done. Most methods are over in microseconds and at most
// ask for Err, and starting and stopping the timer would be the greatest part of
// what the gateway adds to them.
type deadlineContext struct {
	parent context.Context
	at     time.Time // the deadline

	arming sync.Mutex // held while armed is made
	armed  atomic.Pointer[armedContext]
}

type armedContext struct {
	context.Context
	cancel context.CancelFunc
}

// begin makes c a context under parent that is over after timeout.
func (c *deadlineContext) begin(parent context.Context, timeout time.Duration) {
	c.parent, c.at = parent, time.Now().Add(timeout)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.at) {
		c.at = earlier
	}
}

// Deadline implements context.Context.
func (c *deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

// Done implements context.Context.
func (c *deadlineContext) Done() <-chan struct{} { return c.arm().Done() }

// Err implements context.Context. Once it has returned an error Done is closed, for
// what is armed after the deadline, or under a canceled parent, is done at once.
func (c *deadlineContext) Err() error {
	if a := c.armed.Load(); a != nil {
		return a.Err()
	}
	if err := c.parent.Err(); err != nil {
		return err
	}
	if time.Until(c.at) > 0 {
		return nil
	}
	return c.arm().Err()
}

// Value implements context.Context. Contexts that are derived from c find by it, and
// join, the armed one: they need no goroutine to wait for its end.
func (c *deadlineContext) Value(key any) any {
	if a := c.armed.Load(); a != nil {
		return a.Value(key)
	}
	return c.parent.Value(key)
}

func (c *deadlineContext) arm() *armedContext {
	c.arming.Lock()
	defer c.arming.Unlock()
	a := c.armed.Load()
	if a == nil {
		a = new(armedContext)
		a.Context, a.cancel = context.WithDeadline(c.parent, c.at)
		c.armed.Store(a)
	}
	return a
}

// stop releases the timer, if it was started, and ends what was derived from c. The
// context must not be used afterwards.
func (c *deadlineContext) stop() {
	if a := c.armed.Load(); a != nil {
		a.cancel()
	}
}
