package gateway

import "strings"

// route is what a path of JSON-RPC says.
type route struct {
	network string // empty where the host is to say it
	key     string // empty where there is none
	socket  bool   // a WebSocket is asked for
}

// parseRoute takes apart /v3/<key>, /ws/v3/<key> and both below /<network>, with or
// without a final slash; any other path is not ok.
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

// parseEndpoint takes apart what follows the network: v3/<key> or ws/v3/<key>.
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
