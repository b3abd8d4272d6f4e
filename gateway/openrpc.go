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

// openRPCTime is how long the examples of a document may be searched for.
const openRPCTime = 10 * time.Second

// openRPCAge is how many seconds clients may keep a document.
const openRPCAge = 60

// openRPCNetwork returns the network whose document a path names.
func openRPCNetwork(path string) (name string, ok bool) {
	name, ok = strings.CutPrefix(path, "/"+openRPCFolder+"/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, openRPCSuffix)
}

// serveOpenRPC answers with the document of a network. It needs no key: it tells what
// this program's documentation tells, and some public data of the chain.
func (h *Handler) serveOpenRPC(w http.ResponseWriter, r *http.Request, network *served) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method not allowed: expected GET")
		return
	case network == nil || network.openRPC == nil:
		refuse(w, http.StatusNotFound, "no such network: expected /openrpc/<network>.json of one that is served here")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), openRPCTime)
	defer cancel()
	document, err := network.openRPC(ctx)
	if err != nil {
		h.log.ErrorContext(ctx, "OpenRPC document not served", "network", network.name, "error", err)
		refuse(w, http.StatusServiceUnavailable, "the document could not be made: try again later")
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", openRPCAge))
	h.send(w, r, http.StatusOK, document)
}
