package gateway

import "strings"

// route is a parsed JSON-RPC path.
type route struct {
	network string // empty: the host determines it
	key     string // empty if missing
	socket  bool   // a WebSocket is requested
	version string // of the methods, such as v0_9; empty for the usual ones
}

// parseRoute parses /v3/<key> and /ws/v3/<key>, each optionally below /<network>, with
// /rpc/<version> after it, and with a final slash. ok is false for any other path.
func parseRoute(path string) (r route, ok bool) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return route{}, false
	}
	if r, ok := parseEndpoint(rest); ok {
		return r, true
	}
	network, rest, ok := strings.Cut(rest, "/")
	if !ok || network == "" {
		return route{}, false
	}
	r, ok = parseEndpoint(rest)
	r.network = network
	return r, ok
}

// parseEndpoint parses the part after the network: v3/<key> or ws/v3/<key>, and a version.
func parseEndpoint(path string) (r route, ok bool) {
	path, r.socket = strings.CutPrefix(path, "ws/")
	if path, ok = strings.CutPrefix(path, "v3"); !ok {
		return route{}, false
	}
	if r.key, ok = strings.CutPrefix(path, "/"); !ok && path != "" {
		return route{}, false
	}
	r.key = strings.TrimSuffix(r.key, "/")
	if key, version, versioned := strings.Cut(r.key, "/rpc/"); versioned && version != "" {
		r.key, r.version = key, version
	}
	return r, strings.IndexByte(r.key, '/') < 0 && strings.IndexByte(r.version, '/') < 0
}
