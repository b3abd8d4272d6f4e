package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Pages serves, at some hosts, every path that belongs to neither JSON-RPC nor health
// checks.
type Pages struct {
	// Hosts are names without ports; AnyHost means all, empty none. At names of the
	// loopback interface, only clients on that interface are served, since any client can
	// send such a name.
	Hosts []string
	// Handler receives requests rewritten for the client: RemoteAddr is the client's
	// address without a port (as a trusted proxy reports it), and URL has the scheme and
	// the host that the client sees. It must bound what it reads.
	Handler http.Handler
}

// pagesAPI begins the paths at which the pages take JSON.
const pagesAPI = "/api/"

// AnyHost in Pages.Hosts means every host.
const AnyHost = "*"

func (p Pages) check() error {
	for _, host := range p.Hosts {
		if err := CheckPagesHost(host); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	if len(p.Hosts) > 0 && p.Handler == nil {
		return fmt.Errorf("gateway: missing Handler for pages at %q", p.Hosts)
	}
	return nil
}

// CheckPagesHost returns an error if pages cannot be served at host.
func CheckPagesHost(host string) error {
	if host != AnyHost && !isHost(host) {
		return fmt.Errorf("invalid host of pages %q (want a lower-case name or an address, without scheme and port, or *)", host)
	}
	return nil
}

// isLoopback reports whether a host names the loopback interface.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}

// isDirectlyLocal reports whether a request comes over the loopback interface directly, not
// through a proxy on this machine.
func (s *settings) isDirectlyLocal(r *http.Request) bool {
	peer := peerOf(r)
	return peer.IsLoopback() && !s.proxies.contain(peer) && !isForwarded(r)
}

// servePages answers a request for a page, and reports whether it was one.
func (s *settings) servePages(w http.ResponseWriter, r *http.Request) bool {
	if len(s.pages.Hosts) == 0 || r.URL.Path == pathHealthz || r.URL.Path == pathReadyz {
		return false
	}
	if !slices.Contains(s.pages.Hosts, AnyHost) {
		host := hostname(r.Host)
		if !slices.Contains(s.pages.Hosts, host) || isLoopback(host) && !s.isDirectlyLocal(r) {
			return false
		}
	}
	if r.TLS != nil { // of ours: browsers need not try without it again
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	seen := r.Clone(r.Context())
	seen.URL.Host, seen.URL.Scheme = r.Host, s.proxies.scheme(r)
	seen.RemoteAddr = ""
	if client := s.client(r); client.IsValid() {
		seen.RemoteAddr = client.String()
	}
	s.pages.Handler.ServeHTTP(w, seen)
	return true
}
