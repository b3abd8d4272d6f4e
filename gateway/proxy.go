package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
)

// proxies are the networks of reverse proxies that are trusted to name their clients.
type proxies []netip.Prefix

func (p proxies) contain(address netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// client returns the address of the client that a request comes from.
func (s *settings) client(r *http.Request) netip.Addr {
	peer := peerOf(r)
	if len(s.proxies) == 0 || !s.proxies.contain(peer) {
		return peer
	}
	return s.proxies.forwarded(r, peer)
}

// local says whether default limits do not hold for a client: it is on this machine, or a
// trusted proxy itself.
func (s *settings) local(client netip.Addr) bool {
	return !client.IsValid() || client.IsLoopback() || s.proxies.contain(client)
}

// forwarded returns the address of the client that a trusted proxy names. X-Forwarded-For
// is read from its end: whatever stands before the last address that is not a trusted
// proxy's may be forged.
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
			next, err := netip.ParseAddr(strings.TrimSpace(last))
			if err != nil {
				return from
			}
			if from = next.Unmap(); !p.contain(from) {
				return from
			}
		}
	}
	return from
}

// scheme is http or https, as the client sees it. X-Forwarded-Proto is believed of trusted
// proxies only.
func (p proxies) scheme(r *http.Request) string {
	told := r.Header.Get("X-Forwarded-Proto")
	if r.TLS != nil || strings.EqualFold(told, "https") && p.contain(peerOf(r)) {
		return "https"
	}
	return "http"
}

// peerOf returns the address of the other end of a request's connection.
func peerOf(r *http.Request) netip.Addr {
	if conn := connOf(r); conn != nil {
		return conn.peer
	}
	return remoteAddress(r.RemoteAddr)
}

// isForwarded says whether a request was passed on by a proxy that says so.
func isForwarded(r *http.Request) bool {
	return len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
}

// proxyWatch looks at the first requests for signs of a reverse proxy that is missing in
// the configuration: its clients would share whatever is limited by address.
type proxyWatch struct {
	done atomic.Bool

	mu   sync.Mutex
	peer netip.Addr // guarded by mu: of all requests until now
	seen int        // guarded by mu: requests
}

// watchedRequests is how many requests a proxyWatch looks at.
const watchedRequests = 1000

// look takes a request into account, and logs a warning once the signs are sufficient.
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

// remoteAddress returns the address of a connection's other end; zero if it has none, as
// for Unix sockets.
func remoteAddress(text string) netip.Addr {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
