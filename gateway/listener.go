package gateway

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// boundedListener is a listener that drops connections where there are too many, of all
// clients or of one address. What is dropped costs nothing but the accept.
type boundedListener struct {
	net.Listener
	most        int     // connections
	mostEach    int     // connections of one address; 0: no limit
	trusted     proxies // whose connections are those of many clients
	dropped     atomic.Uint64
	mu          sync.Mutex
	open        int                // guarded by mu
	byAddress   map[netip.Addr]int // guarded by mu; counted only where mostEach says so
	everDropped sync.Once
	onDropped   func() // called the first time
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := remoteAddress(conn.RemoteAddr().String())
		if l.enter(from) {
			return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		l.dropped.Add(1)
		l.everDropped.Do(l.onDropped)
		_ = conn.Close() // nobody is told: there is no room for that
	}
}

func (l *boundedListener) counts(from netip.Addr) bool {
	return l.mostEach > 0 && !l.trusted.contain(from)
}

func (l *boundedListener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		return false
	}
	if l.counts(from) {
		if l.byAddress[from] >= l.mostEach {
			return false
		}
		l.byAddress[from]++
	}
	l.open++
	return true
}

func (l *boundedListener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.counts(from) {
		if l.byAddress[from]--; l.byAddress[from] == 0 {
			delete(l.byAddress, from)
		}
	}
}

// connections is how many are open.
func (l *boundedListener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// countedConn gives its place back when it is closed. It can hold a write until the
// next, see gather.
type countedConn struct {
	net.Conn
	leave func()

	// Of whoever writes: net/http has one goroutine a connection that does.
	gathering bool
	held      *[connBuffer]byte // nil while nothing is held
	holds     int               // bytes in held
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
