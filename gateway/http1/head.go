package http1

import (
	"bytes"
	"net/http"
	"strings"
)

// maxFields is the maximum number of header fields of a plain request.
const maxFields = 48

// headEnd ends the head of a request.
var headEnd = []byte("\r\n\r\n")

// beginning is how a plain request begins.
const beginning = "POST /"

// head is the head of a plain request. It is used again for the next request of the
// connection.
type head struct {
	path   string
	host   string
	length int64 // of the body
	header http.Header
	values [maxFields]string // backs the values of header
}

// findHead returns the length of the head with which the input begins, including its last
// line break. 0 means that the head is not complete yet. plain is false if the input cannot
// be a plain request, whatever follows.
func findHead(input []byte) (length int, plain bool) {
	if n := min(len(input), len(beginning)); string(input[:n]) != beginning[:n] {
		return 0, false
	}
	if end := bytes.Index(input, headEnd); end >= 0 {
		return end + len(headEnd), true
	}
	// net/http accepts lines that end with \n alone; their head may be complete.
	for i, b := range input {
		if b == '\n' && input[i-1] != '\r' {
			return 0, false
		}
	}
	return 0, true
}

// parse parses a complete head that begins with [beginning]. It returns false if the request
// is not plain.
func (h *head) parse(text string) bool {
	line, fields, _ := strings.Cut(text[:len(text)-len("\r\n")], "\r\n")
	path, ok := strings.CutSuffix(line[len("POST "):], " HTTP/1.1")
	if !ok || !consists(path, pathBytes) || strings.HasPrefix(path, "//") {
		return false
	}
	h.path, h.host, h.length = path, "", -1
	clear(h.header)
	for n := 0; fields != ""; n++ {
		line, fields, _ = strings.Cut(fields, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if value = strings.Trim(value, " \t"); !ok || n == maxFields || name == "" || !consists(name, tokenBytes) || !consists(value, valueBytes) {
			return false
		}
		h.values[n] = value
		if !h.add(http.CanonicalHeaderKey(name), h.values[n:n+1:n+1]) {
			return false
		}
	}
	return h.host != "" && h.length >= 0
}

// add adds a field with one value. It returns false if the request is not plain.
func (h *head) add(name string, value []string) bool {
	switch name {
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Pragma":
		return false
	case "Connection":
		if !strings.EqualFold(value[0], "keep-alive") {
			return false
		}
	case "Host": // net/http does not keep it among the fields
		if h.host != "" || value[0] == "" || !consists(value[0], hostBytes) {
			return false
		}
		h.host = value[0]
		return true
	case "Content-Length":
		if h.length >= 0 {
			return false
		}
		if h.length = decimal(value[0]); h.length < 0 {
			return false
		}
	}
	if before := h.header[name]; before != nil {
		value = append(before, value...)
	}
	h.header[name] = value
	return true
}

// decimal returns the value of 1 to 15 decimal digits, or -1 if the text is anything else.
func decimal(text string) (value int64) {
	if len(text) == 0 || len(text) > 15 {
		return -1
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return -1
		}
		value = value*10 + int64(text[i]-'0')
	}
	return value
}

// byteSet is a set of bytes.
type byteSet [256]bool

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

var (
	pathBytes  = setOf(alphanumeric + "/-_.~")
	hostBytes  = setOf(alphanumeric + ".:-_[]")
	tokenBytes = setOf(alphanumeric + "!#$%&'*+-.^_`|~")
	valueBytes = printable()
)

func setOf(members string) *byteSet {
	var s byteSet
	for i := range len(members) {
		s[members[i]] = true
	}
	return &s
}

// printable returns the printable ASCII characters and the tab.
func printable() *byteSet {
	s := setOf("\t")
	for b := ' '; b <= '~'; b++ {
		s[b] = true
	}
	return s
}

// consists reports whether all bytes of a text are in the set.
func consists(text string, of *byteSet) bool {
	for i := range len(text) {
		if !of[text[i]] {
			return false
		}
	}
	return true
}
