package gateway

import (
	"net/http"
	"slices"
)

// AnyOrigin in Config.Origins lets pages of every origin call.
const AnyOrigin = "*"

// origins are those of the web pages that may call. Allowing all of them is sound,
// and what wallets and pages need: the key grants access, with its password where it has
// one, and nothing that a browser adds by itself, such as cookies, is ever looked at.
type origins []string

// allowed says whether pages of an origin may call.
func (o origins) allowed(origin string) bool {
	return slices.Contains(o, AnyOrigin) || slices.Contains(o, origin)
}

// allow sets what tells a browser that the page it runs may read the answer.
func (o origins) allow(header http.Header, origin string) {
	switch {
	case slices.Contains(o, AnyOrigin):
		header.Set("Access-Control-Allow-Origin", AnyOrigin)
	case slices.Contains(o, origin):
		header.Set("Access-Control-Allow-Origin", origin)
		header.Add("Vary", "Origin")
	}
}

// preflight answers what a browser asks before it sends a page's request. That it
// may set any header costs nothing: none is looked at but those of the body and the
// password of a key.
func (o origins) preflight(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Allow", allowedMethods)
	if header.Get("Access-Control-Allow-Origin") != "" {
		header.Set("Access-Control-Allow-Methods", allowedMethods)
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			header.Set("Access-Control-Allow-Headers", asked)
		}
		header.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
}
