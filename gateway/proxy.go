package gateway

import (
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks of reverse proxies that are believed whom they ask for.
type proxies []netip.Prefix

func (p proxies) contain(address netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// client is the address of the client that a request comes from. X-Forwarded-For is
// read only from a proxy that is trusted, and from its end: what stands before the
// last address that is no trusted proxy's was written by somebody else.
func (p proxies) client(r *http.Request) netip.Addr {
	from := remoteAddress(r.RemoteAddr)
	if len(p) == 0 || !p.contain(from) {
		return from
	}
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

// scheme is http or https, as the client sees it. X-Forwarded-Proto is read only from a
// proxy that is trusted.
func (p proxies) scheme(r *http.Request) string {
	told := r.Header.Get("X-Forwarded-Proto")
	if r.TLS != nil || strings.EqualFold(told, "https") && p.contain(remoteAddress(r.RemoteAddr)) {
		return "https"
	}
	return "http"
}

// remoteAddress is the address of a connection's other end; zero where it has none, as
// on sockets that are files.
func remoteAddress(text string) netip.Addr {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
