package gateway

import (
	"net/http"
	"strings"

	"ashlar/jsonrpc"

	"github.com/coder/websocket"
)

// serveSocket makes the request's connection a WebSocket and serves it to its end.
// Whoever may not have one is told so over HTTP, where a status can be read.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request, server *jsonrpc.Server, key string) {
	if !isUpgrade(r.Header) {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, http.StatusUpgradeRequired, "upgrade required: expected a WebSocket handshake")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !h.origins.allowed(origin) {
		refuseError(w, http.StatusForbidden, forbidden("origin not allowed: this server does not serve pages of this origin"))
		return
	}
	if h.sockets.full() {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many connections: try again later")
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the origin was checked above
		// What is kept between messages would be a large part of what a connection costs.
		CompressionMode:      websocket.CompressionNoContextTakeover,
		CompressionThreshold: minGzip,
	})
	if err != nil {
		return // the library has answered
	}
	conn.SetReadLimit(int64(h.bodies.limit))
	s := newSocket(r.Context(), h, server, key, conn)
	if !h.sockets.add(s) {
		_ = conn.Close(closeBusy, reasonFull)
		return
	}
	s.serve()
}

// isUpgrade says whether a request asks for a WebSocket.
func isUpgrade(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}
