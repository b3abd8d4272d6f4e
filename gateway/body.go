package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"ashlar/limit"

	"github.com/klauspost/compress/gzip"
)

var (
	errTooLarge = errors.New("the body is over the limit")
	errEncoding = errors.New("the body's content encoding is not understood")
	errNoMemory = errors.New("too many bytes of bodies and answers are held")
)

// trustedLength is how much memory a request gets for announcing a length, in bytes.
const trustedLength = 256 << 10

// minRead is the least that is read at once, in bytes.
const minRead = 512

// bodyReader reads requests' bodies, plain or compressed.
type bodyReader struct {
	gzip sync.Pool // of *gzip.Reader
}

// read appends the body of r to buf, up to most bytes of what is sent and of what it
// decompresses to. The error is errTooLarge, errNoMemory, errEncoding, or tells how
// the body did not arrive.
func (b *bodyReader) read(r *http.Request, buf []byte, most int, held *limit.Lease) ([]byte, error) {
	if r.ContentLength > int64(most) {
		return buf, errTooLarge
	}
	switch encoding := header(r, "Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
		// One byte more than announced, so that the end is seen without growing.
		if want := min(int(r.ContentLength)+1, trustedLength); want > cap(buf) {
			if !held.Hold(want) {
				return buf, errNoMemory
			}
			buf = make([]byte, 0, want)
		}
		return readAll(r.Body, buf, most, held)
	case strings.EqualFold(encoding, "gzip"):
		return b.readGzip(r.Body, buf, most, held)
	}
	return buf, errEncoding
}

// readGzip stops at the limit of what comes out, so that a small body cannot make
// a large one here; what goes in is bounded by the same limit.
func (b *bodyReader) readGzip(body io.Reader, buf []byte, most int, held *limit.Lease) ([]byte, error) {
	in := &io.LimitedReader{R: body, N: int64(most) + 1}
	z, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer b.gzip.Put(z)
	if err := z.Reset(in); err != nil {
		return buf, err
	}
	buf, err := readAll(z, buf, most, held)
	if in.N == 0 {
		return buf, errTooLarge
	}
	return buf, err
}

// readAll appends all of r to buf, or returns errTooLarge when that is over most
// bytes, or errNoMemory.
func readAll(r io.Reader, buf []byte, most int, held *limit.Lease) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			if !held.Hold(2 * cap(buf)) {
				return buf, errNoMemory
			}
			buf = slices.Grow(buf, max(cap(buf), minRead))
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > most:
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// isJSON says whether a content type is one that JSON-RPC comes in: the registered
// one, or one of the two that JSON-RPC over HTTP had before. JSON is in UTF-8.
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
