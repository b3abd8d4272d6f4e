package endpoint

import (
	"net/url"
	"slices"
	"strings"
)

// keyBytes is the least length of a part of a URL that may be a key. Shorter ones are names, such as v3 or mainnet.
const keyBytes = 8

// Excerpt returns the beginning of a text that the node with a URL has sent, for logs and statuses: about most bytes.
// Nodes, and proxies before them, repeat what they do not know, so what may be a key in the URL, or among other words
// that the node gets, is shown as "…".
func Excerpt(text string, of *url.URL, most int, others ...string) string {
	keys := secrets(of, others)
	long := len(text) > 16*most
	text = text[:min(len(text), 16*most)]
	for _, key := range keys {
		text = strings.ReplaceAll(text, key, "…")
	}
	if long && len(keys) > 0 { // it may end within a key
		text = text[:len(text)-min(len(text), len(keys[0]))]
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// secrets returns the parts of a URL, and the other words, that may be a key, the longest first.
func secrets(of *url.URL, others []string) (parts []string) {
	if of == nil {
		of = new(url.URL)
	}
	parts = strings.FieldsFunc(of.Path+"/"+of.EscapedPath()+"/"+of.RawQuery, func(r rune) bool { return strings.ContainsRune("/&=", r) })
	for _, values := range of.Query() {
		parts = append(parts, values...)
	}
	parts = append(append(parts, of.User.Username()), others...) // some providers take the key as the user's name
	parts = slices.DeleteFunc(parts, func(part string) bool { return len(part) < keyBytes })
	if password, ok := of.User.Password(); ok && password != "" {
		parts = append(parts, password)
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

// shownError is an error with another text.
type shownError struct {
	error
	of     *url.URL
	most   int
	others []string
}

func (e *shownError) Error() string { return Excerpt(e.error.Error(), e.of, e.most, e.others...) }

func (e *shownError) Unwrap() error { return e.error }

// Shown returns an error whose text is the [Excerpt] of err's. The text is made when it is asked for.
func Shown(err error, of *url.URL, most int, others ...string) error {
	return &shownError{err, of, most, others}
}
