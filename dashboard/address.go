package dashboard

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// scheme is http or https, as the browser sees it: the gateway writes it into the URL.
func scheme(r *http.Request) string {
	if r.URL.Scheme == "https" || r.TLS != nil {
		return "https"
	}
	return "http"
}

// client is the address of the browser; zero where it has none.
func client(r *http.Request) netip.Addr {
	if at, err := netip.ParseAddr(r.RemoteAddr); err == nil {
		return at.Unmap()
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// endpoint is where a network answers, for whoever came to the dashboard with r: JSON-RPC
// is served on the same listener, so its port is the same. A network that has a host of
// its own is named by it, any other in its path.
func endpoint(r *http.Request, n *Network, key string) string {
	host := r.Host
	if len(n.Hosts) == 0 {
		return scheme(r) + "://" + host + "/" + n.Name + "/v3/" + key
	}
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host, port = host[:i], host[i:]
	}
	own := n.Hosts[0]
	for _, other := range n.Hosts {
		if strings.EqualFold(other, host) { // what the browser has reached already
			own = other
		}
	}
	return scheme(r) + "://" + own + port + "/v3/" + key
}

// socketEndpoint is where an endpoint answers by WebSocket.
func socketEndpoint(url string) string {
	path := strings.LastIndex(url, "/v3/")
	return "ws" + strings.TrimPrefix(url[:path], "http") + "/ws" + url[path:]
}

// local is a path to which somebody may be led on; the first page for anything that
// leads elsewhere, or that no page has.
func local(to string) string {
	const first = "/"
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil || len(to) > 1000 {
		return first
	}
	// Browsers take a backslash for a slash, and two slashes for a host.
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return first
	}
	return to
}
