package gateway

import (
	"net/http"
	"slices"
	"strings"

	"ashlar/account"
	"ashlar/account/usage"

	"github.com/coder/websocket"
)

// serveSocket upgrades a request to a WebSocket and serves it to its end. A request that is
// refused gets an HTTP error instead.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request, network *served, key *account.Key, route route) {
	settings := h.current.Load()
	payer := settings.payer(key, settings.client(r))
	if over := payer.spendAddress(1); over != nil { // a handshake is work, also one that is refused
		h.refuseKnown(w, settings, r, network, key, over)
		return
	}
	if !isUpgrade(r.Header) {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, r, http.StatusUpgradeRequired, "upgrade required: expected a WebSocket handshake")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !settings.origins.allowed(origin) {
		h.refuseKnown(w, settings, r, network, key, forbidden(usage.Origin, "origin not allowed: this server does not serve pages of this origin"))
		return
	}
	who := holderOf(key)
	if refused := h.sockets.reserve(who, settings.sockets); refused != nil {
		h.refuseKnown(w, settings, r, network, key, refused)
		return
	}
	defer h.sockets.release(who)
	taken := &hijacked{ResponseWriter: w}
	conn, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the origin was checked above
		// Context kept between messages would be a large part of a connection's memory.
		CompressionMode:      websocket.CompressionNoContextTakeover,
		CompressionThreshold: minGzip,
	})
	if err != nil {
		return // the library has sent the error
	}
	conn.SetReadLimit(-1) // receive checks the current limit for each message
	r.Header = keptHeader(r.Header)
	s := newSocket(h, r, network.name, route, who, conn)
	s.raw, s.compressed = taken.conn, w.Header().Get("Sec-WebSocket-Extensions") != ""
	s.raw.marks.agreed = s.compressed
	if !h.sockets.add(s) {
		_ = conn.Close(closeGone, reasonStopping)
		return
	}
	s.serve()
}

// keptFields are the header fields of a handshake that are read again while its connection is open.
var keptFields = []string{"Authorization", "Origin", "X-Forwarded-For"}

// keptHeader returns a header with keptFields only. The whole one may take 16 times maxHeaderBytes.
func keptHeader(all http.Header) http.Header {
	kept := make(http.Header)
	for _, name := range keptFields {
		if values := all[name]; len(values) > 0 {
			kept[name] = slices.Clone(values) // which may be part of an array for all fields
		}
	}
	return kept
}

// refuseKnown refuses a WebSocket, and counts that for its key.
func (h *Handler) refuseKnown(w http.ResponseWriter, s *settings, r *http.Request, network *served, key *account.Key, refused *refusal) {
	s.countRefused(key, network, originOf(r), refused)
	h.refuse(w, refused, nil)
}

// isUpgrade reports whether a request is for a WebSocket.
func isUpgrade(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}
