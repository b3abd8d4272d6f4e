package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/limit"
)

// anonymousIdle is how long a connection may be idle before a valid key has been seen on
// it.
const anonymousIdle = 5 * time.Second

// boundedListener is a listener that drops connections over the limits, in total or per
// address. A dropped connection costs only the accept.
type boundedListener struct {
	net.Listener
	most        int            // connections
	maxEach     int            // connections of one address, or one /64 network of IPv6; 0: no limit
	trusted     func() proxies // each proxy's connections are those of many clients; a reload may change them
	dropped     atomic.Uint64
	requests    atomic.Int64 // over HTTP/2, of open
	mu          sync.Mutex
	open        int                // guarded by mu: connections, and requests over HTTP/2
	byAddress   map[netip.Addr]int // guarded by mu: of open, by address; none without maxEach
	everDropped sync.Once
	onDropped   func() // called for the first dropped connection
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := remoteAddress(conn.RemoteAddr().String())
		if l.enter(peer) {
			c := &countedConn{Conn: conn, peer: peer, leave: sync.OnceFunc(func() { l.leave(peer) })}
			if peer.IsLoopback() || !peer.IsValid() || l.trusted().contain(peer) {
				c.keep()
			}
			return c, nil
		}
		l.drop()
		_ = conn.Close() // without an answer, which would cost as much as a request
	}
}

// drop counts a dropped connection.
func (l *boundedListener) drop() {
	l.dropped.Add(1)
	l.everDropped.Do(l.onDropped)
}

// enterRequest counts a request over HTTP/2 like a connection, because one connection can have
// hundreds of them at once. It returns false if there are too many; else leaveRequest must follow.
func (l *boundedListener) enterRequest(peer netip.Addr) bool {
	if !l.enter(peer) {
		l.drop()
		return false
	}
	l.requests.Add(1)
	return true
}

func (l *boundedListener) leaveRequest(peer netip.Addr) {
	l.requests.Add(-1)
	l.leave(peer)
}

// bounds reports whether maxEach applies to an address. The default limit does not apply
// on the loopback interface.
func (l *boundedListener) bounds(peer netip.Addr) bool {
	return !(l.maxEach == DefaultConnectionsEach && peer.IsLoopback()) && !l.trusted().contain(peer)
}

func (l *boundedListener) enter(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		return false
	}
	if l.maxEach > 0 { // connections of proxies count too: they may not be trusted when they end
		network := limit.Network(peer)
		if l.byAddress[network] >= l.maxEach && l.bounds(peer) {
			return false
		}
		l.byAddress[network]++
	}
	l.open++
	return true
}

func (l *boundedListener) leave(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.maxEach > 0 {
		network := limit.Network(peer)
		if l.byAddress[network]--; l.byAddress[network] == 0 {
			delete(l.byAddress, network)
		}
	}
}

// connections returns the number of open connections.
func (l *boundedListener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open - int(l.requests.Load())
}

// countedConn releases its place when closed. It can hold a write until the next one, see
// gather.
type countedConn struct {
	net.Conn
	peer  netip.Addr // the client's or proxy's address
	leave func()
	kept  atomic.Bool // exempt from anonymousIdle

	idle *time.Timer // belongs to watchIdle

	// A WebSocket's messages and pings are written by different goroutines.
	holding   sync.Mutex        // held while writing
	gathering bool              // guarded by holding
	held      *[connBuffer]byte // guarded by holding; nil while nothing is held
	holds     int               // guarded by holding: bytes in held
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing more will be sent.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// keep exempts the connection from anonymousIdle, because a valid key was seen on it.
func (c *countedConn) keep() {
	if !c.kept.Load() { // avoid the write in the usual case
		c.kept.Store(true)
	}
}

// countedBelow returns the countedConn that conn is, or that it wraps with TLS or as handed
// over.
func countedBelow(conn net.Conn) *countedConn {
	switch over := conn.(type) {
	case *tls.Conn:
		conn = over.NetConn()
	case *handedConn:
		conn = over.Conn
	}
	counted, _ := conn.(*countedConn)
	return counted
}

// watchIdle closes a connection that is idle for too long before a valid key was seen on
// it. It is the ConnState callback of an http.Server, which calls it from one goroutine at
// a time for each connection.
func watchIdle(conn net.Conn, state http.ConnState) {
	c := countedBelow(conn)
	if c == nil {
		return
	}
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	if state == http.StateIdle && !c.kept.Load() {
		c.idle = time.AfterFunc(anonymousIdle, func() { _ = conn.Close() })
	}
}
