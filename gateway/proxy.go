package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
)

// proxies are the networks of reverse proxies that are trusted to report client addresses.
type proxies []netip.Prefix

func (p proxies) contain(address netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// client returns the client address of a request.
func (s *settings) client(r *http.Request) netip.Addr {
	peer := peerOf(r)
	if len(s.proxies) == 0 || !s.proxies.contain(peer) {
		return peer
	}
	return s.proxies.forwarded(r, peer)
}

// local reports whether a client is exempt from default limits: it is on this machine, or
// is itself a trusted proxy.
func (s *settings) local(client netip.Addr) bool {
	return !client.IsValid() || client.IsLoopback() || s.proxies.contain(client)
}

// forwarded returns the client address that a trusted proxy reports. X-Forwarded-For is
// read from its end: everything before the last address that is not a trusted proxy's may
// be forged.
func (p proxies) forwarded(r *http.Request, from netip.Addr) netip.Addr {
	lines := r.Header.Values("X-Forwarded-For")
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			var last string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, last = line[:comma], line[comma+1:]
			} else {
				last, more = line, false
			}
			next, ok := parseForwarded(strings.TrimSpace(last))
			if !ok {
				return from
			}
			if from = next; !p.contain(from) {
				return from
			}
		}
	}
	return from
}

// parseForwarded parses an entry of X-Forwarded-For: an address, to which some proxies add a port.
func parseForwarded(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap(), true
	}
	if inside, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inside, "]")
	}
	at, err := netip.ParseAddr(text)
	return at.Unmap(), err == nil
}

// scheme returns http or https, as the client sees it. X-Forwarded-Proto is used only if a
// trusted proxy sent it.
func (p proxies) scheme(r *http.Request) string {
	forwarded := r.Header.Get("X-Forwarded-Proto")
	if r.TLS != nil || strings.EqualFold(forwarded, "https") && p.contain(peerOf(r)) {
		return "https"
	}
	return "http"
}

// peerOf returns the remote address of a request's connection.
func peerOf(r *http.Request) netip.Addr {
	if conn := connOf(r); conn != nil {
		return conn.peer
	}
	return remoteAddress(r.RemoteAddr)
}

// isForwarded reports whether a request has a header of a proxy.
func isForwarded(r *http.Request) bool {
	return len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
}

// proxyWatch examines the first requests for signs of a reverse proxy that is missing from
// the configuration: all its clients would share the limits of one address.
type proxyWatch struct {
	done atomic.Bool

	mu   sync.Mutex
	peer netip.Addr // guarded by mu: of all requests so far
	seen int        // guarded by mu: requests
}

// watchedRequests is how many requests a proxyWatch examines.
const watchedRequests = 1000

// look examines a request, and logs a warning once the signs are sufficient.
func (w *proxyWatch) look(log *slog.Logger, s *settings, r *http.Request) {
	if w.done.Load() {
		return
	}
	peer := peerOf(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if !w.peer.IsValid() {
		w.peer = peer
	}
	switch inside := peer.IsPrivate() || peer.IsLoopback(); {
	case w.done.Load():
	case len(s.proxies) > 0, !inside, peer != w.peer:
		w.done.Store(true)
	case isForwarded(r), w.seen >= watchedRequests && peer.IsPrivate():
		w.done.Store(true)
		log.Warn("all clients seem to come from one address: if it is a reverse proxy's, list it in proxies, or limits by address hold for all its clients together",
			"address", peer.String())
	case w.seen >= watchedRequests:
		w.done.Store(true)
	}
}

// remoteAddress returns the address of a connection's remote end; zero if it has none, as
// for Unix sockets.
func remoteAddress(text string) netip.Addr {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
