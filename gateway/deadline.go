package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlineContext is like a context from context.WithTimeout, but starts its timer only
// when Done is called. Most methods take microseconds and only check Err, so starting and
// stopping a timer would be most of the gateway's cost per call.
type deadlineContext struct {
	parent context.Context
	at     time.Time // the deadline

	arming sync.Mutex // held while creating armed
	armed  atomic.Pointer[armedContext]
}

type armedContext struct {
	context.Context
	cancel context.CancelFunc
}

// begin starts c as a child of parent that expires after timeout.
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

// Err implements context.Context. Once it has returned an error, Done is closed: a context
// armed after the deadline, or under a canceled parent, is done at once.
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

// Value implements context.Context. Through it, contexts derived from c find the armed
// context and join it, so they need no goroutine to wait for its end.
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

// stop releases the timer, if any, and cancels contexts derived from c. The context must
// not be used afterwards.
func (c *deadlineContext) stop() {
	if a := c.armed.Load(); a != nil {
		a.cancel()
	}
}
