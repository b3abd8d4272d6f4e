package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"ashlar/jsonrpc"

	"github.com/klauspost/compress/gzip"
)

// minGzip is the minimum size in bytes of an answer that is compressed: compressing one
// that fits into a single packet does not make it faster.
const minGzip = 1024

// compressor compresses answers with gzip.
type compressor struct {
	writers sync.Pool // of *gzip.Writer
}

// sliceWriter is an io.Writer that appends to a slice.
type sliceWriter []byte

func (w *sliceWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// compress appends the gzip form of data to out. The fastest level reduces JSON to a fifth
// or less of its size; higher levels gain little and cost several times as much.
func (c *compressor) compress(data, out []byte) []byte {
	to := (*sliceWriter)(&out)
	z, ok := c.writers.Get().(*gzip.Writer)
	if ok {
		z.Reset(to)
	} else {
		z, _ = gzip.NewWriterLevel(to, gzip.BestSpeed) // fails only for levels that do not exist
	}
	_, _ = z.Write(data) // writing to memory does not fail
	_ = z.Close()
	c.writers.Put(z)
	return out
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
	if len(body) >= minGzip {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_, err := w.Write(body)
	return err
}

// refuse answers an invalid HTTP request with a JSON-RPC error, the form in which clients
// look for one.
func refuse(w http.ResponseWriter, status int, message string) {
	refuseError(w, status, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message})
}

// refuseError is refuse with a given JSON-RPC error.
func refuseError(w http.ResponseWriter, status int, err *jsonrpc.Error) {
	_ = reply(w, status, jsonrpc.AppendError(nil, nil, err)) // an error means that the client has disconnected
}
