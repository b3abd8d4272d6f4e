package gateway

import (
	"net"
	"slices"
	"sync"
)

// handover is the listener of the http.Server that answers what package http1 does not:
// connections arrive with the bytes that were read from them.
type handover struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	close   func()
}

func newHandover(address net.Addr) *handover {
	h := &handover{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// handedConn is a connection whose first bytes were read before.
type handedConn struct {
	net.Conn
	unread []byte // belongs to the reading goroutine
}

// Read implements net.Conn.
func (c *handedConn) Read(p []byte) (int, error) {
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		if c.unread = c.unread[n:]; len(c.unread) == 0 {
			c.unread = nil // a WebSocket may stay open for long
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite tells the client that nothing more will be sent. net/http does that before it
// closes a connection on which bytes of the client may still arrive.
func (c *handedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil // Close follows
}

// take passes a connection to Accept, or closes it if the listener is closed.
func (h *handover) take(conn net.Conn, read []byte) {
	select {
	case h.conns <- &handedConn{conn, slices.Clone(read)}:
	case <-h.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.close()
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return h.address }
