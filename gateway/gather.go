package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connBuffer is the size of net/http's write buffer per connection, which a WebSocket takes
// over. A longer answer, headers included, leaves it in two writes, each a system call. If the
// answer is only a little longer, the second packet wakes the client for a few bytes.
const connBuffer = 4 << 10

// headerRoom is larger than the headers of nearly every answer.
const headerRoom = 512

type connContextKey struct{}

// withConn stores the connection in the context of its requests, for connOf.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if counted := countedBelow(conn); counted != nil {
		return context.WithValue(ctx, connContextKey{}, counted)
	}
	return ctx
}

// connOf returns the connection of a request, or nil if it is not a Server's.
func connOf(r *http.Request) *countedConn {
	conn, _ := r.Context().Value(connContextKey{}).(*countedConn)
	return conn
}

// gather combines the writes of an answer of known length into one. release must be called
// after the answer has been written.
func gather(w http.ResponseWriter, r *http.Request, length int) (release func()) {
	conn := connOf(r)
	if conn == nil || r.TLS != nil || length < connBuffer-headerRoom { // TLS has its own records
		return func() {}
	}
	conn.gather()
	return func() {
		_ = http.NewResponseController(w).Flush() // fails if a write failed, which net/http has recorded
		conn.release()
	}
}

// gather holds the first write of an answer or a message until the next one or release.
func (c *countedConn) gather() {
	c.holding.Lock()
	defer c.holding.Unlock()
	c.gathering = true
}

// release writes what is held.
func (c *countedConn) release() {
	c.holding.Lock()
	defer c.holding.Unlock()
	c.gathering = false
	if c.writeHeld(nil) != nil {
		_ = c.Close() // the writer believes it was written, and would send the next answer after a partial one
	}
}

// heldWrites are buffers for the first part of an answer. They are pooled, not per
// connection, because most connections are waiting for a request.
var heldWrites = sync.Pool{New: func() any { return new([connBuffer]byte) }}

// Write implements net.Conn. While gathering, it holds the first write and sends it
// together with the next.
func (c *countedConn) Write(b []byte) (int, error) {
	c.holding.Lock()
	defer c.holding.Unlock()
	switch {
	case c.held != nil:
		if err := c.writeHeld(b); err != nil {
			return 0, err
		}
		return len(b), nil
	case c.gathering && len(b) <= connBuffer:
		c.held = heldWrites.Get().(*[connBuffer]byte)
		c.holds = copy(c.held[:], b)
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// writeHeld writes the held bytes, if any, followed by b, and stops gathering. c.holding must
// be held.
func (c *countedConn) writeHeld(b []byte) error {
	if c.held == nil {
		return nil
	}
	both := net.Buffers{c.held[:c.holds], b}
	_, err := both.WriteTo(c.Conn)
	heldWrites.Put(c.held)
	c.held, c.gathering = nil, false
	return err
}
