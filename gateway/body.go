package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"ashlar/jsonrpc"
	"ashlar/limit"

	"github.com/klauspost/compress/gzip"
)

var (
	errTooLarge    = errors.New("the body is over the limit")
	errContentType = errors.New("unknown content type of the body")
	errEncoding    = errors.New("unknown content encoding of the body")
)

const (
	// trustedLength is the maximum number of bytes allocated because of an announced
	// length.
	trustedLength = 256 << 10
	// minRead is the minimum size of a read, in bytes.
	minRead = 512
	// bytesPerCredit is how many bytes of a body, as sent or decompressed, cost a credit. The
	// first 8 KiB are free.
	bytesPerCredit = 8 << 10
)

// bodyReader reads the bodies of requests, plain or compressed.
type bodyReader struct{ buffers *jsonrpc.BufferPool }

// read appends the body of r to buf, and then starts the request's time limit, which excludes
// the time the client took to send it. The limit of bytes applies to the body as sent and
// decompressed. The error is errTooLarge, limit.ErrMemory, errEncoding, a *refusal, or a
// read error.
func (b *bodyReader) read(r *http.Request, buf []byte, e *exchange) (body []byte, err error) {
	if r.ContentLength > int64(e.settings.bodyBytes) {
		return buf, errTooLarge
	}
	begin := func() { e.begin(r.Context()) }
	switch encoding := header(r, "Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
		// One byte more than announced, so that reading the end does not grow the buffer.
		if want := min(int(r.ContentLength)+1, trustedLength); want > cap(buf) {
			if !e.lease.Hold(want) {
				return buf, limit.ErrMemory
			}
			buf = make([]byte, 0, want)
		}
		buf, err := readAll(r.Body, buf, e)
		begin()
		return buf, err
	case strings.EqualFold(encoding, "gzip"):
		return b.readZipped(r.Body, &gunzippers, buf, e, begin)
	}
	return buf, errEncoding
}

// decompressor reads what compressed bytes stand for. It is large, and reset for each body.
type decompressor interface {
	io.Reader
	reset(zipped []byte) error
}

// gunzippers are of type *gunzipper.
var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

type gunzipper struct{ gzip.Reader }

func (z *gunzipper) reset(zipped []byte) error { return z.Reset(bytes.NewReader(zipped)) }

// readZipped appends what a compressed body stands for to buf. It calls begin once the body has been
// read. Before that no decompressor is taken, so a client that is slow holds no more than it has sent.
func (b *bodyReader) readZipped(r io.Reader, decompressors *sync.Pool, buf []byte, e *exchange, begin func()) (body []byte, err error) {
	claimed, held := e.claimed, e.lease.Held()
	zipped := e.claim(b.buffers, b.buffers.Get())
	defer func() {
		b.buffers.Put(zipped)
		e.claimed = claimed
		e.lease.Shrink(max(held, cap(body)))
	}()
	if *zipped, err = readAll(r, *zipped, e); err != nil {
		return buf, err
	}
	begin()
	return decompress(*zipped, decompressors, buf, e)
}

// decompress appends what a compressed body stands for to buf.
func decompress(zipped []byte, decompressors *sync.Pool, buf []byte, e *exchange) ([]byte, error) {
	e.zipped, e.sent = len(zipped), max(e.sent, len(zipped))
	defer func() { e.zipped = 0 }()
	z := decompressors.Get().(decompressor)
	defer decompressors.Put(z)
	if err := z.reset(zipped); err != nil {
		return buf, err
	}
	return unzip(z, buf, e)
}

// unzip decompresses a body. A few bytes can become megabytes, and megabytes nothing, so a body
// that is long before or after is decompressed in a slot of heavy calls, and not beyond the limit
// of decompressed bytes or of calls in a batch.
func unzip(z io.Reader, buf []byte, e *exchange) ([]byte, error) {
	long := e.zipped > jsonrpc.LongRequest
	if long {
		leave, err := e.heavily()
		if err != nil {
			return buf, err
		}
		defer leave()
	}
	buf, err := readAll(io.LimitReader(z, jsonrpc.LongRequest), buf, e)
	if err != nil || len(buf) < jsonrpc.LongRequest {
		return buf, err
	}
	if e.network.server.Exceeds(buf) {
		return wholeRunes(buf), nil // which is enough for the answer
	}
	if !long {
		leave, err := e.heavily()
		if err != nil {
			return buf, err
		}
		defer leave()
	}
	return readAll(z, buf, e)
}

// wholeRunes returns the beginning of a text without a last character that was cut off.
func wholeRunes(text []byte) []byte {
	for n := len(text) - 1; n >= 0 && len(text)-n < utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			if !utf8.FullRune(text[n:]) {
				return text[:n]
			}
			break
		}
	}
	return text
}

// readAll appends all of r to buf, and charges the memory to the exchange. The error is
// errTooLarge, limit.ErrMemory, a *refusal, or r's.
func readAll(r io.Reader, buf []byte, e *exchange) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			more := max(cap(buf), minRead)
			if !e.lease.Hold(e.zipped + cap(buf) + more) { // less may suffice
				more = max(cap(buf)/8, minRead)
				if !e.lease.Hold(e.zipped + cap(buf) + more) {
					return buf, limit.ErrMemory
				}
			}
			buf = slices.Grow(buf, more)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if refused := e.receive(len(buf)); refused != nil {
			return buf, refused
		}
		if len(buf) > e.settings.bodyBytes {
			return buf, errTooLarge
		}
		switch err {
		case nil:
		case io.EOF:
			return buf, nil
		default:
			return buf, err
		}
	}
}

// isJSON reports whether a content type is one of JSON-RPC in UTF-8: the registered one, or
// one of the two that JSON-RPC over HTTP used before.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	if charset, given := parameters["charset"]; err != nil || given && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	switch media {
	case "application/json", "application/json-rpc", "application/jsonrequest":
		return true
	}
	return false
}
