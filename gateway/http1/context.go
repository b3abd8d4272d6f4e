package http1

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// unwatched is how long a request may run before a check of its context begins to watch the
// connection. Most requests end earlier.
const unwatched = 10 * time.Millisecond

// requestContext is the context of one request. It ends with the request, with the server,
// and when the client disconnects. It learns of the latter only while it watches the
// connection: from the first call of Done, or of Err after a while.
type requestContext struct {
	context.Context // of the connection
	conn            *conn
	began           time.Time

	arming   sync.Mutex // held while setting the fields below
	armed    atomic.Pointer[cancelContext]
	hasBody  bool // the body has been read, so what arrives now belongs to a later request
	watching bool // conn.watch has started
}

type cancelContext struct {
	context.Context
	cancel context.CancelFunc
}

// ended is the armed context of requests that have ended.
var ended = func() *cancelContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &cancelContext{ctx, cancel}
}()

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} { return c.arm().Done() }

// Err implements context.Context.
func (c *requestContext) Err() error {
	if a := c.armed.Load(); a != nil {
		return a.Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if time.Since(c.began) < unwatched {
		return nil
	}
	return c.arm().Err()
}

// Value implements context.Context. Through it, contexts derived from c find the armed
// context and join it, so they need no goroutine to wait for its end.
func (c *requestContext) Value(key any) any {
	if a := c.armed.Load(); a != nil {
		return a.Value(key)
	}
	return c.Context.Value(key)
}

func (c *requestContext) arm() *cancelContext {
	if a := c.armed.Load(); a != nil {
		return a
	}
	c.arming.Lock()
	defer c.arming.Unlock()
	a := c.armed.Load()
	if a == nil {
		a = new(cancelContext)
		a.Context, a.cancel = context.WithCancel(c.Context)
		c.armed.Store(a)
		c.watch()
	}
	return a
}

// bodyRead notes that the body has been read to its end.
func (c *requestContext) bodyRead() {
	c.arming.Lock()
	defer c.arming.Unlock()
	c.hasBody = true
	c.watch()
}

// watch begins to watch the connection, if that is wanted and possible. c.arming must be held.
func (c *requestContext) watch() {
	if a := c.armed.Load(); a != nil && a != ended && c.hasBody && !c.watching {
		c.watching = c.conn.watch(a.cancel)
	}
}

// end ends the context. When it returns, nothing reads the connection any more.
func (c *requestContext) end() {
	c.arming.Lock()
	a := c.armed.Swap(ended)
	c.arming.Unlock()
	if a != nil {
		a.cancel()
	}
	if c.watching { // never set again
		c.conn.unwatch()
	}
}
