package gateway

import (
	"net/http"
	"slices"
)

// AnyOrigin in Config.Origins allows pages of every origin.
const AnyOrigin = "*"

// origins are the allowed CORS origins. Allowing all of them is safe, and what wallets and
// pages need: access depends on the key (and its password, if it has one), and nothing that
// browsers send automatically, such as cookies, is read.
type origins []string

// allowed reports whether pages of an origin may call.
func (o origins) allowed(origin string) bool {
	return slices.Contains(o, AnyOrigin) || slices.Contains(o, origin)
}

// allow sets the headers that let a browser pass the answer to its page. For an answer that
// caches may keep it is also called without an origin.
func (o origins) allow(header http.Header, origin string) {
	if slices.Contains(o, AnyOrigin) {
		header.Set("Access-Control-Allow-Origin", AnyOrigin)
		return
	}
	header.Add("Vary", "Origin")
	if origin != "" && slices.Contains(o, origin) {
		header.Set("Access-Control-Allow-Origin", origin)
	}
}

// expose lets pages in browsers read a header of the answer, if they may read the answer.
func expose(header http.Header, name string) {
	if len(header["Access-Control-Allow-Origin"]) > 0 {
		header["Access-Control-Expose-Headers"] = []string{name}
	}
}

// preflight answers a CORS preflight request. Any header is allowed, because the only ones
// read are those of the body and of a key's password.
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
