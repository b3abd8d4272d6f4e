package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connBuffer is the size of net/http's write buffer of a connection. An
// answer that is longer, headers included, leaves it in two writes, each a system
// call, and where the answer is hardly longer, the second packet wakes the client for
// a few bytes.
const connBuffer = 4 << 10

// headerRoom is more than the headers of nearly every answer take.
const headerRoom = 512

type connContextKey struct{}

// withConn lets the requests of a connection find it, see connOf.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if counted := countedBelow(conn); counted != nil {
		return context.WithValue(ctx, connContextKey{}, counted)
	}
	return ctx
}

// connOf returns the connection that a request came by, nil if it did not come by a
// Server's.
func connOf(r *http.Request) *countedConn {
	conn, _ := r.Context().Value(connContextKey{}).(*countedConn)
	return conn
}

// gather makes the writes of an answer of a known length one. release must be called
// once the answer has been written.
func gather(w http.ResponseWriter, r *http.Request, length int) (release func()) {
	conn := connOf(r)
	if conn == nil || r.TLS != nil || length < connBuffer-headerRoom { // TLS has records of its own
		return func() {}
	}
	conn.gathering = true
	return func() {
		_ = http.NewResponseController(w).Flush() // fails where a write did, of which net/http knows
		conn.gathering = false
		if conn.writeHeld(nil) != nil {
			_ = conn.Close() // net/http takes it for written, and would go on behind a part of it
		}
	}
}

// heldWrites are buffers for what a connection is given first of an answer. They are
// not the connections', of which most wait for a request.
var heldWrites = sync.Pool{New: func() any { return new([connBuffer]byte) }}

// Write implements net.Conn. Where it gathers, what comes first is held and written
// with what comes next.
func (c *countedConn) Write(b []byte) (int, error) {
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

// writeHeld writes what is held, if anything is, and b behind it. It gathers no more.
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
