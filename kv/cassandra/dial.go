package cassandra

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// connector opens a connection, as [net.Dialer.DialContext] does.
type connector func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext implements gocql.Dialer.
func (c connector) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return c(ctx, network, address)
}

// dialer opens encrypted connections, and remembers why a node refused one.
//
// With TLS 1.3 a handshake ends at the client before the node has looked at the client's
// certificate. A node that refuses it sends an alert and closes the connection. If the
// driver writes its first message after that, it reports the failed write as a node that
// did not answer in time, and the alert is lost.
type dialer struct {
	connect  connector
	config   *tls.Config
	patience time.Duration // of a write that has failed, for the alert that says why

	mu    sync.Mutex
	alert error // guarded by mu; the last one; nil: none
}

// DialHost implements gocql.HostDialer.
func (d *dialer) DialHost(ctx context.Context, host *gocql.HostInfo) (*gocql.DialedHost, error) {
	plain, err := d.connect(ctx, "tcp", host.ConnectAddressAndPort())
	if err != nil {
		return nil, err
	}
	// The driver sets no limit: for a node that says nothing it would wait for ever, and not try others.
	handshake, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dialed, err := gocql.WrapTLS(handshake, plain, host.HostnameAndPort(), d.config)
	if err != nil {
		return nil, err
	}
	dialed.Conn = &encrypted{Conn: dialed.Conn, dialer: d, ended: make(chan struct{})}
	return dialed, nil
}

// explain returns err, which opening a session has failed with, or the alert of a node if
// there was one.
func (d *dialer) explain(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil || d.alert == nil {
		return err
	}
	return fmt.Errorf("a node refused the encrypted connection: %w", d.alert)
}

// encrypted is an encrypted connection of which alerts are remembered. The driver reads it
// from the beginning until a read fails.
type encrypted struct {
	net.Conn
	dialer *dialer

	once  sync.Once
	ended chan struct{} // closed when a read has failed
}

// Read implements net.Conn.
func (c *encrypted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" { // how crypto/tls marks alerts of the other side
		c.dialer.mu.Lock()
		c.dialer.alert = alert
		c.dialer.mu.Unlock()
	}
	c.once.Do(func() { close(c.ended) })
	return n, err
}

// Write implements net.Conn.
func (c *encrypted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		select {
		case <-c.ended:
		case <-time.After(c.dialer.patience):
		}
	}
	return n, err
}
