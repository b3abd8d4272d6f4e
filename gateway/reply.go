package gateway

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ashlar/jsonrpc"
	"ashlar/limit"

	"github.com/klauspost/compress/gzip"
)

// minGzip is the minimum size in bytes of an answer that is compressed: compressing one
// that fits into a single packet does not make it faster.
const minGzip = 1024

// compressor compresses answers with gzip.
type compressor struct {
	writers sync.Pool // of *gzip.Writer
}

// heldWriter is an io.Writer that appends to a slice while the exchange has memory for it.
type heldWriter struct {
	to      []byte
	e       *exchange
	besides int // bytes of the request and the plain answer
}

func (w *heldWriter) Write(p []byte) (int, error) {
	if need := len(w.to) + len(p); need > cap(w.to) {
		grown := max(need, 2*cap(w.to))
		if !w.e.lease.Hold(w.besides + cap(w.to) + grown) { // both, while one is copied to the other
			return 0, limit.ErrMemory
		}
		w.to = slices.Grow(w.to, grown-len(w.to))
	}
	w.to = append(w.to, p...)
	return len(p), nil
}

// compress appends the gzip form of an answer to out, or returns false if there is no memory
// for it. The fastest level reduces JSON to a fifth or less of its size; higher levels gain
// little and cost several times as much.
func (c *compressor) compress(e *exchange, answer, out []byte) (zipped []byte, ok bool) {
	to := &heldWriter{to: out, e: e, besides: e.asked + len(answer)}
	z, reused := c.writers.Get().(*gzip.Writer)
	if reused {
		z.Reset(to)
	} else {
		z, _ = gzip.NewWriterLevel(to, gzip.BestSpeed) // fails only for levels that do not exist
	}
	defer c.writers.Put(z)
	_, err := z.Write(answer)
	if err == nil {
		err = z.Close()
	}
	return to.to, err == nil
}

// acceptsGzip reports whether an Accept-Encoding header allows gzip by name.
func acceptsGzip(header string) bool {
	for len(header) > 0 {
		var coding string
		coding, header, _ = strings.Cut(header, ",")
		name, weight, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight = strings.ReplaceAll(weight, " ", "")
		if q, ok := strings.CutPrefix(strings.ToLower(weight), "q="); ok {
			value, err := strconv.ParseFloat(q, 64)
			return err == nil && value > 0
		}
		return true
	}
	return false
}

// jsonType is the value of every answer's Content-Type. It is shared because net/http only
// reads it.
var jsonType = []string{"application/json"}

// reply writes a whole answer. It lets net/http set the length of short ones, which is
// cheaper. After an error, body must not be reused, because HTTP/2 may still be reading it.
func reply(w http.ResponseWriter, status int, body []byte) error {
	header := w.Header()
	header["Content-Type"] = jsonType
	if len(body) >= minGzip || flushed(w) {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_, err := w.Write(body)
	return err
}

// flushed reports whether an answer is flushed before net/http can set its length, see
// Server.serveStream: one over HTTP/2.
func flushed(w http.ResponseWriter) bool {
	_, ok := w.(*streamWriter)
	return ok
}

// refuse answers an invalid HTTP request, whose body is not read yet, with a JSON-RPC
// error, the form in which clients look for one.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	refuseError(w, status, readRequestID(w, r), &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message})
}

// refuseError answers a request with an error, for the call with an id or none.
func refuseError(w http.ResponseWriter, status int, id []byte, err *jsonrpc.Error) {
	_ = reply(w, status, jsonrpc.AppendError(nil, id, err)) // an error means that the client has disconnected
}

const (
	// idBytes is how much of a refused request is searched for its id.
	idBytes = 4 << 10
	// idTime is how long the server waits for these bytes.
	idTime = time.Second
)

// readRequestID reads the beginning of the body of a request that is refused, and returns
// the id of the call in it, or nil. It does not read compressed bodies, nor ask a client
// that waits for permission to send its body.
func readRequestID(w http.ResponseWriter, r *http.Request) []byte {
	if r.Method != http.MethodPost || r.ContentLength == 0 || header(r, "Content-Encoding") != "" || header(r, "Expect") != "" {
		return nil
	}
	// If this fails, the server's own limit applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(idTime))
	beginning := make([]byte, min(idBytes, uint64(r.ContentLength)))
	n, _ := io.ReadFull(r.Body, beginning)
	return jsonrpc.RequestID(beginning[:n])
}

// requestIDOf returns the id of the call in a body of which the beginning was read, or nil.
func requestIDOf(body []byte) []byte { return jsonrpc.RequestID(body[:min(len(body), idBytes)]) }
