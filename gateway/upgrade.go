package gateway

import (
	"net/http"
	"strings"

	"ashlar/account"

	"github.com/coder/websocket"
)

// serveSocket makes the connection of a request, whose key has the text, a WebSocket and
// serves it to its end. Whoever may not have one is told so over HTTP, where a status can
// be read.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request, network *served, key *account.Key, text string) {
	settings := h.current.Load()
	if !isUpgrade(r.Header) {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, http.StatusUpgradeRequired, "upgrade required: expected a WebSocket handshake")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !settings.origins.allowed(origin) {
		h.refuse(w, forbidden("origin not allowed: this server does not serve pages of this origin"))
		return
	}
	who := holderOf(key)
	if refused := h.sockets.reserve(who, settings.sockets); refused != nil {
		h.refuse(w, refused)
		return
	}
	defer h.sockets.release(who)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the origin was checked above
		// A context kept between messages would take most of a connection's memory.
		CompressionMode:      websocket.CompressionNoContextTakeover,
		CompressionThreshold: minGzip,
	})
	if err != nil {
		return // the library has answered
	}
	conn.SetReadLimit(-1) // each message is held to the limit of its time as it is read
	s := newSocket(h, r, network.name, text, who, conn)
	if !h.sockets.add(s) {
		_ = conn.Close(closeGone, reasonStopping)
		return
	}
	s.serve()
}

// isUpgrade says whether a request asks for a WebSocket.
func isUpgrade(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}
