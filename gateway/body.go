package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var (
	errTooLarge = errors.New("the body is over the limit")
	errEncoding = errors.New("the body's content encoding is not understood")
)

// bodyReader reads requests' bodies, plain or compressed, up to a limit.
type bodyReader struct {
	limit        int       // bytes, of what is sent and of what it decompresses to
	gzip         sync.Pool // of *gzip.Reader
	initialBytes int       // what is allocated on the word of a Content-Length, at most
}

// read appends the body of r to buf. The error is errTooLarge, errEncoding, or
// tells how the body did not arrive.
func (b *bodyReader) read(r *http.Request, buf []byte) ([]byte, error) {
	if r.ContentLength > int64(b.limit) {
		return buf, errTooLarge
	}
	switch encoding := r.Header.Get("Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
		// One byte more than announced, so that the end is seen without growing.
		if want := min(int(r.ContentLength)+1, b.initialBytes); want > cap(buf) {
			buf = make([]byte, 0, want)
		}
		return readAll(r.Body, buf, b.limit)
	case strings.EqualFold(encoding, "gzip"):
		return b.readGzip(r.Body, buf)
	}
	return buf, errEncoding
}

// readGzip stops at the limit of what comes out, so that a small body cannot make
// a large one here; what goes in is bounded by the same limit.
func (b *bodyReader) readGzip(body io.Reader, buf []byte) ([]byte, error) {
	in := &io.LimitedReader{R: body, N: int64(b.limit) + 1}
	z, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer b.gzip.Put(z)
	if err := z.Reset(in); err != nil {
		return buf, err
	}
	buf, err := readAll(z, buf, b.limit)
	if in.N == 0 {
		return buf, errTooLarge
	}
	return buf, err
}

// readAll appends all of r to buf, or returns errTooLarge when that is over limit bytes.
func readAll(r io.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// isJSON says whether a content type is one that JSON-RPC comes in: the registered
// one, or one of the two that JSON-RPC over HTTP had before.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch media {
	case "application/json", "application/json-rpc", "application/jsonrequest":
		return true
	}
	return false
}
