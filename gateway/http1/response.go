package http1

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxUndeclared is the maximum length in bytes of an answer without a Content-Length.
	maxUndeclared = 4 << 10
	// headRoom is larger than the head of nearly every answer.
	headRoom = 512
)

// outBuffer is the memory in which an answer is put together: room for a head, then the body.
// A body that is too long for it is written from where it is.
type outBuffer [headRoom + maxUndeclared]byte

var outBuffers = sync.Pool{New: func() any { return new(outBuffer) }}

var (
	errUndeclared = fmt.Errorf("answer without Content-Length is longer than %d bytes", maxUndeclared)
	errBeyond     = errors.New("answer is longer than its Content-Length")
	errShort      = errors.New("answer is shorter than its Content-Length")
)

// response is the http.ResponseWriter of one request. Its memory is used again for the next
// request of the connection.
//
// The handler states the length of an answer in Content-Length. If it does not, the answer
// is held until the handler returns.
type response struct {
	conn   *conn
	header http.Header

	status   int   // 0 until the handler has written the header
	declared int64 // Content-Length set by the handler; -1 if none
	written  int64 // bytes of the body
	sent     bool  // the head was sent
	close    bool  // the connection ends with this answer
	limited  bool  // the handler has set a deadline for writing
	err      error // of the connection, or of the handler: nothing more is sent

	out  *outBuffer
	held int // bytes of the body in out
}

// begin prepares for an answer.
func (w *response) begin() {
	clear(w.header)
	*w = response{conn: w.conn, header: w.header, declared: -1, out: outBuffers.Get().(*outBuffer)}
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational responses are ignored.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	if length := w.header["Content-Length"]; len(length) == 1 {
		w.declared = decimal(length[0])
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return 0, w.err
	case w.declared >= 0 && w.written+int64(len(p)) > w.declared:
		w.err = errBeyond
	case w.held+len(p) <= maxUndeclared:
		w.held += copy(w.out[headRoom+w.held:], p)
	case w.declared < 0:
		w.err = errUndeclared
	default:
		w.flush(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	w.written += int64(len(p))
	return len(p), nil
}

// FlushError is used by http.ResponseController.
func (w *response) FlushError() error {
	if w.declared >= 0 {
		w.flush(nil)
	}
	return w.err
}

// SetReadDeadline is used by http.ResponseController.
func (w *response) SetReadDeadline(t time.Time) error { return w.conn.net.SetReadDeadline(t) }

// SetWriteDeadline is used by http.ResponseController.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.limited = true
	return w.conn.net.SetWriteDeadline(t)
}

// finish sends the rest of the answer. It returns an error if the answer is not whole.
func (w *response) finish() error {
	w.WriteHeader(http.StatusOK)
	if w.declared < 0 {
		w.declared = w.written
	}
	w.flush(nil)
	outBuffers.Put(w.out)
	w.out = nil
	if w.err == nil && w.written != w.declared {
		return errShort
	}
	return w.err
}

// flush sends the head unless it was sent, the held bytes of the body, and then more of it.
func (w *response) flush(more []byte) {
	first := w.out[headRoom : headRoom+w.held]
	if !w.sent {
		w.sent = true
		if head := w.appendHead(w.out[:0:headRoom]); len(head) <= headRoom {
			first = w.out[headRoom-len(head) : headRoom+w.held]
			copy(first, head)
		} else {
			first = append(head, first...)
		}
		if !w.limited && w.err == nil {
			w.err = w.conn.net.SetWriteDeadline(time.Now().Add(w.conn.server.WriteTime))
		}
	}
	w.held = 0
	for _, part := range [][]byte{first, more} {
		if w.err == nil && len(part) > 0 {
			_, w.err = w.conn.net.Write(part)
		}
	}
}

// appendHead appends the head of the answer to out.
func (w *response) appendHead(out []byte) []byte {
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(w.status), 10)
	out = append(out, ' ')
	out = append(out, http.StatusText(w.status)...)
	out = append(out, "\r\nDate: "...)
	out = w.conn.appendDate(out)
	out = append(out, "\r\n"...)
	for name, values := range w.header {
		if name == "Content-Length" {
			continue
		}
		for _, value := range values {
			out = appendField(out, name, value)
			w.close = w.close || name == "Connection" && value == "close"
		}
	}
	if !w.close && w.conn.mustClose() {
		out = appendField(out, "Connection", "close")
		w.close = true
	}
	out = append(out, "Content-Length: "...)
	out = strconv.AppendInt(out, w.declared, 10)
	return append(out, "\r\n\r\n"...)
}

var spaces = strings.NewReplacer("\r", " ", "\n", " ")

// appendField appends a field of a head.
func appendField(out []byte, name, value string) []byte {
	if !consists(value, valueBytes) {
		value = spaces.Replace(value) // as net/http does
	}
	out = append(out, name...)
	out = append(out, ": "...)
	out = append(out, value...)
	return append(out, "\r\n"...)
}
