package gateway

import (
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each address, or /64 network of IPv6, is limited to its share of connections. The default
// share does not apply to proxies and loopback addresses.
func TestConnectionsOfOneAddress(t *testing.T) {
	listener := func(each int) *boundedListener {
		return &boundedListener{
			most: 10 * DefaultConnectionsEach, maxEach: each, trusted: func() proxies { return proxies{netip.MustParsePrefix("10.0.0.0/8")} },
			byAddress: make(map[netip.Addr]int),
		}
	}
	for _, c := range []struct {
		name      string
		each      int
		addresses []string
		bounded   bool
	}{
		{"an address", 5, []string{"192.0.2.1"}, true},
		{"a network of IPv6", 5, []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::"}, true},
		{"two networks of IPv6", 5, []string{"2001:db8::1", "2001:db8:0:1::1"}, false},
		{"a proxy", 5, []string{"10.1.2.3"}, false},
		{"a limit on loopback", 5, []string{"127.0.0.1"}, true},
		{"the default", DefaultConnectionsEach, []string{"192.0.2.1"}, true},
		{"the default on loopback", DefaultConnectionsEach, []string{"127.0.0.1", "::1"}, false},
	} {
		l, entered := listener(c.each), 0
		for i := range c.each + 1 {
			if l.enter(netip.MustParseAddr(c.addresses[i%len(c.addresses)])) {
				entered++
			}
		}
		if bounded := entered == c.each; bounded != c.bounded || entered < c.each {
			t.Errorf("%s: %d connections of %d, expected it to be bounded: %t", c.name, entered, c.each+1, c.bounded)
		}
		for i := range entered {
			l.leave(netip.MustParseAddr(c.addresses[i%len(c.addresses)]))
		}
		if l.open != 0 || len(l.byAddress) != 0 {
			t.Errorf("%s: %d connections and %d addresses are left", c.name, l.open, len(l.byAddress))
		}
	}
}

// A connection without a valid key may be idle for a short time only.
func TestIdleConnectionsWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := new(writtenConn)
		conn := &countedConn{Conn: under, leave: func() {}}
		for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle} {
			watchIdle(conn, state)
		}
		time.Sleep(anonymousIdle - 1)
		watchIdle(conn, http.StateActive)
		time.Sleep(2 * anonymousIdle)
		synctest.Wait()
		if under.closed {
			t.Fatal("closed while it is used")
		}
		watchIdle(conn, http.StateIdle)
		time.Sleep(anonymousIdle)
		synctest.Wait()
		if !under.closed {
			t.Error("left open without a valid key")
		}
		under.closed = false
		watchIdle(conn, http.StateActive)
		conn.keep()
		watchIdle(conn, http.StateIdle)
		time.Sleep(2 * anonymousIdle)
		synctest.Wait()
		if under.closed {
			t.Error("closed after a valid key")
		}
	})
}

// Only some failed TLS handshakes are logged, with the number of those that were not.
func TestHandshakesAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		to := slog.NewLogLogger(newQuietLog(slog.NewTextHandler(&text, nil)), slog.LevelWarn)
		failed := func(l *log.Logger, n int) {
			for range n {
				l.Printf("http: TLS handshake error from 192.0.2.1:1: EOF")
			}
		}
		failed(to, 1000)
		to.Print("something else")
		time.Sleep(handshakeLogEvery)
		failed(to, 1)
		if lines := strings.Count(text.String(), "\n"); lines != 3 || strings.Count(text.String(), "dropped=999") != 1 {
			t.Errorf("%d lines, expected 3, the last with dropped=999:\n%s", lines, text.String())
		}
	})
}

// A reload that adds or removes a proxy holds for the listener too, also for connections that were open before.
func TestReloadedProxiesOfListener(t *testing.T) {
	config := Config{Keys: anyKey{}, Log: slog.New(slog.DiscardHandler)}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(t.Context(), ListenConfig{Address: "127.0.0.1:0", ConnectionsEach: 1}, h)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l, peer, entered := server.listener, netip.MustParseAddr("192.0.2.1"), 0
	for _, step := range []struct {
		proxies []netip.Prefix
		enters  bool
	}{{nil, true}, {nil, false}, {[]netip.Prefix{netip.PrefixFrom(peer, 32)}, true}, {nil, false}} {
		config.Proxies = step.proxies
		if err := h.Reload(config); err != nil {
			t.Fatal(err)
		}
		ok := l.enter(peer)
		if ok {
			entered++
		}
		if ok != step.enters {
			t.Errorf("a connection after %d others, with the proxies %v: accepted: %t, expected %t", entered, step.proxies, ok, step.enters)
		}
	}
	for range entered {
		l.leave(peer)
	}
	if l.open != 0 || len(l.byAddress) != 0 {
		t.Errorf("%d connections and %d addresses are left", l.open, len(l.byAddress))
	}
}

// TestTakenAddress: the error says which listener cannot listen, and where.
func TestTakenAddress(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Listen(t.Context(), ListenConfig{Address: taken.Addr().String()}, nil)
	if want := "public listener: listen tcp " + taken.Addr().String(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
