package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The path of a network's OpenRPC document, at every host: /openrpc/NETWORK.json.
const (
	openRPCFolder = "openrpc"
	openRPCSuffix = ".json"
)

// openRPCTime is the time limit for finding a document's examples.
const openRPCTime = 10 * time.Second

// openRPCAge is how many seconds clients may cache a document.
const openRPCAge = 60

// openRPCNetwork returns the network named in a document's path.
func openRPCNetwork(path string) (name string, ok bool) {
	name, ok = strings.CutPrefix(path, "/"+openRPCFolder+"/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, openRPCSuffix)
}

// serveOpenRPC serves a network's document. It needs no key: the document contains only
// what this program's documentation says, and some public data of the chain.
func (h *Handler) serveOpenRPC(w http.ResponseWriter, r *http.Request, network *served) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, http.StatusMethodNotAllowed, "method not allowed: expected GET")
		return
	case network == nil || network.openRPC == nil || !network.users.Enter():
		refuse(w, r, http.StatusNotFound, "no such network: expected /openrpc/<network>.json of a network that is served here")
		return
	}
	defer network.users.Leave()
	ctx, cancel := context.WithTimeout(r.Context(), openRPCTime)
	defer cancel()
	document, err := network.openRPC(ctx)
	if err != nil {
		h.log.ErrorContext(ctx, "create OpenRPC document failed", "network", network.name, "error", err)
		refuse(w, r, http.StatusServiceUnavailable, "the document could not be created: try again later")
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", openRPCAge))
	h.send(w, r, new(exchange), http.StatusOK, document) // no account holds its memory
}
