package site

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Scheme returns http or https, as the browser sees it; the gateway writes it into the URL.
func Scheme(r *http.Request) string {
	if r.URL.Scheme == "https" || r.TLS != nil {
		return "https"
	}
	return "http"
}

// Client returns the address of the browser, or the zero value if it is unknown.
func Client(r *http.Request) netip.Addr {
	if at, err := netip.ParseAddr(r.RemoteAddr); err == nil {
		return at.Unmap()
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// Endpoint returns the URL of a network as the browser that sent r can reach it. JSON-RPC
// is served on the same listener, so the port is the same. A network with a host of its own
// is addressed by that host, any other by its path.
func Endpoint(r *http.Request, n *Network, key string) string {
	host := r.Host
	if len(n.Hosts) == 0 {
		return Scheme(r) + "://" + host + "/" + n.Name + "/v3/" + key
	}
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host, port = host[:i], host[i:]
	}
	own := n.Hosts[0]
	for _, other := range n.Hosts {
		if strings.EqualFold(other, host) { // the browser reached this name
			own = other
		}
	}
	return Scheme(r) + "://" + own + port + "/v3/" + key
}

// SocketEndpoint returns the WebSocket URL of an endpoint.
func SocketEndpoint(url string) string {
	path := strings.LastIndex(url, "/v3/")
	return "ws" + strings.TrimPrefix(url[:path], "http") + "/ws" + url[path:]
}

// Local returns to if it is a path of the dashboard, else "/", so that a redirect cannot
// lead to another site.
func Local(to string) string {
	const first = "/"
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil || len(to) > 1000 {
		return first
	}
	// Browsers treat a backslash as a slash, and two slashes as the start of a host.
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return first
	}
	return to
}
