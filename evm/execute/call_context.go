package execute

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// shortCall is how long a call runs before its context gets a timer of its own. A call whose
// client has left may run for so much longer.
const shortCall = 10 * time.Millisecond

// callContext ends a call when its time is over or its client has left. For a call of
// microseconds, a context.WithTimeout and what its parent makes for it cost more than reading
// the state. So callContext makes one only when Done is called or when the call has run for
// shortCall. Until then Err is nil.
type callContext struct {
	parent context.Context
	at     time.Time // the deadline
	timer  *time.Timer
	armed  atomic.Pointer[armedCall]

	mu      sync.Mutex
	ended   bool        // guarded by mu: arming makes no sense any more
	pending *callEnding // guarded by mu: waits for the context to be armed
}

type armedCall struct {
	context.Context
	cancel context.CancelFunc
}

// callEnding is a function that is called when a call is to end.
type callEnding struct {
	f    func()
	stop func() bool // of context.AfterFunc; nil before
}

// newCallContext returns a context that expires after a time. It must be stopped.
func newCallContext(parent context.Context, timeout time.Duration) *callContext {
	c := &callContext{parent: parent, at: time.Now().Add(timeout)}
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.at) {
		c.at = earlier
	}
	c.mu.Lock() // the timer may fire before it is assigned
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(min(timeout, shortCall), func() { c.arm() })
	return c
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return c.at, true }

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.arm().Done() }

// Err implements context.Context.
func (c *callContext) Err() error {
	if a := c.armed.Load(); a != nil {
		return a.Err()
	}
	return nil
}

// Value implements context.Context. Contexts derived from c call Done first and then find the
// armed context through Value, so they need no goroutine to wait for its end.
func (c *callContext) Value(key any) any {
	if a := c.armed.Load(); a != nil {
		return a.Value(key)
	}
	return c.parent.Value(key)
}

// arm makes the context with the timer, unless it exists.
func (c *callContext) arm() *armedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.armed.Load(); a != nil {
		return a
	}
	a := new(armedCall)
	a.Context, a.cancel = context.WithDeadline(c.parent, c.at)
	if c.ended {
		a.cancel()
	}
	if c.pending != nil {
		c.pending.stop = context.AfterFunc(a, c.pending.f)
	}
	c.armed.Store(a)
	return a
}

// stop ends the context, and with it those derived from it. No function waits for it any more.
func (c *callContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.ended = true
	if a := c.armed.Load(); a != nil {
		a.cancel()
	}
}

// afterFunc is context.AfterFunc. It does not arm a callContext for the first function that
// waits for it.
func afterFunc(ctx context.Context, f func()) (stop func()) {
	if c, ok := ctx.(*callContext); ok {
		if ending, ok := c.hold(f); ok {
			return func() { c.drop(ending) }
		}
	}
	end := context.AfterFunc(ctx, f)
	return func() { end() }
}

// hold keeps a function until the context is armed. It returns false if it is armed, or has a
// function to keep.
func (c *callContext) hold(f func()) (*callEnding, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != nil || c.armed.Load() != nil {
		return nil, false
	}
	c.pending = &callEnding{f: f}
	return c.pending, true
}

// drop ends the waiting of a function that hold has kept.
func (c *callContext) drop(ending *callEnding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = nil
	if ending.stop != nil {
		ending.stop()
	}
}
