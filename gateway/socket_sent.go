package gateway

import (
	"net"
	"sync/atomic"
)

// sentConn bounds in how many bytes a client sends a message of a WebSocket. The library bounds
// only what they become: frames can be empty, and as many as a client likes. It also removes the
// marks of compressed messages.
type sentConn struct {
	net.Conn
	early []byte       // that arrived with the handshake and were not read yet
	read  atomic.Int64 // bytes so far
	most  atomic.Int64 // of read; 0: no bound
	marks marks
}

// sentBytes is in how many bytes a message may be sent for each that it may have. Frames take
// some.
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
func (c *sentConn) Read(p []byte) (n int, err error) {
	if most := c.most.Load(); most > 0 && c.read.Load() >= most {
		return 0, errTooLarge
	}
	if len(c.early) > 0 {
		n = copy(p, c.early)
		if c.early = c.early[n:]; len(c.early) == 0 {
			c.early = nil
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	c.marks.remove(p[:n])
	c.read.Add(int64(n))
	return n, err
}
