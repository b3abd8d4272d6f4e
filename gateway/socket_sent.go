package gateway

import (
	"net"
	"sync/atomic"
)

// sentConn bounds in how many bytes a client sends a message of a WebSocket. The library bounds
// only what they become: frames and blocks of compressed text can be empty, and as many as a
// client likes.
type sentConn struct {
	net.Conn
	read atomic.Int64 // bytes so far
	most atomic.Int64 // of read; 0: no bound
}

// sentBytes is in how many bytes a message may be sent for each that it may have. Frames take
// some, and so does compressed text that is flushed often.
const sentBytes = 2

// begin begins a message of at most so many bytes.
func (c *sentConn) begin(bytes int) (from int64) {
	from = c.read.Load()
	c.most.Store(from + sentBytes*int64(bytes))
	return from
}

// end ends a message, and returns in how many bytes it was sent, to within the buffers of a
// connection.
func (c *sentConn) end(from int64) int {
	c.most.Store(0)
	return int(c.read.Load() - from)
}

// Read implements net.Conn. The error is errTooLarge once a message was sent in too many bytes.
func (c *sentConn) Read(p []byte) (int, error) {
	if most := c.most.Load(); most > 0 && c.read.Load() >= most {
		return 0, errTooLarge
	}
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}
