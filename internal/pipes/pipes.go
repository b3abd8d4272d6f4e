// Package pipes connects clients and servers of tests in memory, without buffers. Within a bubble
// of synctest, time passes only while everything waits, however busy the machine is.
package pipes

import (
	"context"
	"net"
)

// Listener is a listener whose connections are made by DialContext. It must be closed once.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
}

// Listen returns a listener.
func Listen() *Listener { return &Listener{make(chan net.Conn), make(chan struct{})} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (*Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// DialContext connects to the listener, whatever the address is. It waits until the connection is
// accepted.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
