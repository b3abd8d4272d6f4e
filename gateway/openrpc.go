package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
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
func (h *Handler) serveOpenRPC(w http.ResponseWriter, r *http.Request, s *settings, network *served) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		h.refuseUnserved(w, r, s, "", http.StatusMethodNotAllowed, "method not allowed: expected GET")
		return
	case network == nil || network.openRPC == nil || !network.users.Enter():
		h.refuseUnserved(w, r, s, "", http.StatusNotFound, "no such network: expected /openrpc/<network>.json of a network that is served here")
		return
	}
	defer network.users.Leave()
	ctx, cancel := context.WithTimeout(r.Context(), openRPCTime)
	defer cancel()
	document, err := network.openRPC(ctx)
	if err != nil {
		h.log.ErrorContext(ctx, "cannot create the OpenRPC document", "network", network.name, "error", err)
		refuse(w, r, http.StatusServiceUnavailable, "the document could not be created: try again later")
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", openRPCAge))
	if len(document) >= minGzip && takesGzip(w, r) {
		w.Header().Set("Content-Encoding", "gzip")
		document = network.zipped.of(document, &h.compressor)
	}
	defer gather(w, r, len(document))()
	_ = reply(w, http.StatusOK, document) // an error means that the client has disconnected
}

// zippedDocument keeps the compressed form of a document, which anyone may ask for at any rate.
type zippedDocument struct {
	mu     sync.Mutex // held while the document is compressed, so that it is compressed once
	plain  []byte     // guarded by mu
	zipped []byte     // guarded by mu
}

// of returns the compressed form of a document. Neither may change.
func (z *zippedDocument) of(document []byte, c *compressor) []byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.zipped == nil || !bytes.Equal(z.plain, document) { // which is fast for the same slice
		z.plain = document
		z.zipped, _ = c.compress(new(exchange), document, nil) // no account holds its memory, so it does not fail
	}
	return z.zipped
}
