package gateway

import "strings"

// route is a parsed JSON-RPC path.
type route struct {
	network string // empty: the host determines it
	key     string // empty if missing
	socket  bool   // a WebSocket is requested
}

// parseRoute parses /v3/<key> and /ws/v3/<key>, each optionally below /<network> and with a
// final slash. ok is false for any other path.
func parseRoute(path string) (r route, ok bool) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return route{}, false
	}
	if r.key, r.socket, ok = parseEndpoint(rest); ok {
		return r, true
	}
	if r.network, rest, ok = strings.Cut(rest, "/"); !ok || r.network == "" {
		return route{}, false
	}
	r.key, r.socket, ok = parseEndpoint(rest)
	return r, ok
}

// parseEndpoint parses the part after the network: v3/<key> or ws/v3/<key>.
func parseEndpoint(path string) (key string, socket, ok bool) {
	path, socket = strings.CutPrefix(path, "ws/")
	if path, ok = strings.CutPrefix(path, "v3"); !ok {
		return "", false, false
	}
	if key, ok = strings.CutPrefix(path, "/"); !ok && path != "" {
		return "", false, false
	}
	key = strings.TrimSuffix(key, "/")
	return key, socket, strings.IndexByte(key, '/') < 0
}
