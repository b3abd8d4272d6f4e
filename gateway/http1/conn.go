package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// readSize is the size of a connection's buffer. A longer head is not plain.
	readSize = 4 << 10
	// maxDiscard is how much of a body that the handler has not read is discarded to keep the
	// connection. net/http has the same limit.
	maxDiscard = 256 << 10
	// lingerTime is how long a closing connection waits for more bytes of the client, and
	// maxLinger how long it waits in all, see linger.
	lingerTime, maxLinger = 500 * time.Millisecond, 5 * time.Second
	// maxLineEnds is how many bytes of empty lines are ignored between two requests (RFC 9112,
	// section 2.2). net/http has the same limit.
	maxLineEnds = 4
)

// The states of a connection.
const (
	stateIdle   = iota // no byte of the next request has arrived
	stateActive        // a request is being read or answered
	stateClosed        // closed by the server while idle
)

// conn is a connection. All fields but state belong to the goroutine that serves it, and end
// and a byte of buf to the one that watches.
type conn struct {
	server *Server
	net    net.Conn
	ctx    context.Context
	state  atomic.Int32
	served bool // a request was answered

	buf        [readSize]byte
	start, end int // the bytes of buf that were read from the connection, but not used

	head     head
	url      url.URL
	request  http.Request
	body     body
	response response

	watched    chan struct{} // closed when the watching goroutine ends
	unwatching atomic.Bool
	gone       bool // the client has disconnected; belongs to the watching goroutine, then to serve

	date   [len(http.TimeFormat)]byte
	second int64 // of date
}

func newConn(s *Server, inner net.Conn) *conn {
	c := &conn{server: s, net: inner, ctx: s.Context(inner)}
	c.head.header = make(http.Header)
	c.response = response{conn: c, header: make(http.Header)}
	c.request = http.Request{
		Method: http.MethodPost, URL: &c.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.head.header, Body: &c.body, RemoteAddr: inner.RemoteAddr().String(),
	}
	return c
}

// serve answers requests until the connection ends or is handed over.
func (c *conn) serve() {
	for {
		text, plain, err := c.next()
		switch {
		case err != nil:
			_ = c.net.Close()
			return
		case !plain:
			_ = c.net.SetReadDeadline(time.Time{})
			c.server.HandOver(c.net, c.buf[c.start:c.end])
			return
		}
		c.start += len(text)
		if !c.answer() {
			c.linger()
			return
		}
		c.served = true
		c.state.Store(stateIdle)
		if c.server.stopping.Load() {
			_ = c.net.Close()
			return
		}
	}
}

var errIdle = errors.New("closed while idle")

// next reads and parses the head of the next request. It does not consume it, so that a
// request that is not plain can be handed over from its start.
func (c *conn) next() (text string, plain bool, err error) {
	wait, ignored := c.server.HeadTime, 0
	if c.served {
		wait, ignored = c.server.IdleTime(c.net), maxLineEnds
	}
	for {
		ignored = c.skipLineEnds(ignored)
		if c.start < c.end {
			if c.state.Load() != stateActive {
				if !c.state.CompareAndSwap(stateIdle, stateActive) {
					return "", false, errIdle
				}
				wait = c.server.HeadTime
			}
			length, plain := findHead(c.buf[c.start:c.end])
			if length > 0 {
				text := string(c.buf[c.start : c.start+length])
				plain := c.head.parse(text) && c.server.Accepts(c.head.path)
				return text, plain, nil
			}
			if !plain || c.end-c.start == readSize {
				return "", false, nil
			}
		}
		c.compact()
		if wait > 0 { // for the first byte, and once more for the rest of the head
			if err := c.net.SetReadDeadline(time.Now().Add(wait)); err != nil {
				return "", false, err
			}
			wait = 0
		}
		n, err := c.net.Read(c.buf[c.end:])
		if c.end += n; n == 0 && err != nil {
			return "", false, err
		}
	}
}

// skipLineEnds drops line ends at the start of the buffer, at most as many as given, and returns
// how many more may be dropped.
func (c *conn) skipLineEnds(most int) int {
	for ; most > 0 && c.start < c.end && (c.buf[c.start] == '\r' || c.buf[c.start] == '\n'); most-- {
		c.start++
	}
	return most
}

// compact moves the unused bytes to the start of the buffer.
func (c *conn) compact() {
	c.end = copy(c.buf[:], c.buf[c.start:c.end])
	c.start = 0
}

// answer calls the handler for the parsed request. It returns false if the connection must be
// closed.
func (c *conn) answer() (keep bool) {
	ctx := &requestContext{Context: c.ctx, conn: c, began: time.Now()}
	c.url = url.URL{Path: c.head.path}
	c.request.RequestURI, c.request.Host, c.request.ContentLength = c.head.path, c.head.host, c.head.length
	c.body = body{conn: c, ctx: ctx, rest: c.head.length}
	if int64(c.end-c.start) < c.body.rest && c.net.SetReadDeadline(ctx.began.Add(c.server.BodyTime)) != nil {
		return false
	}
	if c.body.rest == 0 {
		ctx.hasBody = true
	}
	c.response.begin()
	finished := c.handle(c.request.WithContext(ctx))
	ctx.end()
	err := c.response.finish()
	if err == errUndeclared || err == errBeyond || err == errShort {
		c.server.Log.Error("wrong answer: closing its connection", "client", c.request.RemoteAddr, "error", err)
	}
	if !finished || err != nil || c.response.close || c.gone {
		return false
	}
	if c.body.rest > 0 {
		_, err = io.Copy(io.Discard, &c.body) // at most maxDiscard bytes, see mustClose
	}
	return err == nil
}

// handle calls the handler. It returns false if the handler panicked.
func (c *conn) handle(r *http.Request) (finished bool) {
	defer func() {
		if finished {
			return
		}
		c.response.err = http.ErrAbortHandler // sends nothing more
		if cause := recover(); cause != http.ErrAbortHandler {
			c.server.Log.Error("panic while answering a request", "client", r.RemoteAddr, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	c.server.Handler.ServeHTTP(&c.response, r)
	return true
}

// mustClose reports whether the current answer is the connection's last one.
func (c *conn) mustClose() bool {
	return c.server.stopping.Load() || c.body.rest > maxDiscard
}

// linger closes the connection once the client has read the answer. If a connection is closed
// while bytes of the client are still arriving, the answer may be lost on its way.
func (c *conn) linger() {
	defer func() { _ = c.net.Close() }()
	half, ok := c.net.(interface{ CloseWrite() error })
	if c.gone || !ok || half.CloseWrite() != nil {
		return
	}
	// In two halves: what arrived while this machine was busy is read in the second one.
	end := time.Now().Add(maxLinger)
	for silent := 0; silent < 2 && time.Now().Before(end); silent++ {
		if c.net.SetReadDeadline(time.Now().Add(lingerTime/2)) != nil {
			return
		}
		n, err := c.net.Read(c.buf[:])
		if n > 0 {
			silent = -1
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// watch starts a goroutine that calls disconnected when the client disconnects. It returns
// false if it cannot, because the buffer is full of later requests. The body must have been
// read.
func (c *conn) watch(disconnected func()) bool {
	if c.compact(); c.end == readSize {
		return false
	}
	c.watched = make(chan struct{})
	c.unwatching.Store(false)
	_ = c.net.SetReadDeadline(time.Time{}) // if this fails, so does Read
	go func() {
		defer close(c.watched)
		n, err := c.net.Read(c.buf[c.end : c.end+1])
		c.end += n
		if n == 0 && err != nil && !c.unwatching.Load() {
			c.gone = true
			disconnected()
		}
	}()
	return true
}

// unwatch ends the watching goroutine, and waits for it.
func (c *conn) unwatch() {
	c.unwatching.Store(true)
	_ = c.net.SetReadDeadline(time.Unix(1, 0)) // ends Read; if this fails, Read has failed
	<-c.watched
}

// appendDate appends the present time as in the Date field.
func (c *conn) appendDate(out []byte) []byte {
	now := time.Now()
	if second := now.Unix(); second != c.second {
		c.second = second
		now.UTC().AppendFormat(c.date[:0], http.TimeFormat)
	}
	return append(out, c.date[:]...)
}

// body is the body of one request. Its first bytes may be in the connection's buffer.
type body struct {
	conn *conn
	ctx  *requestContext
	rest int64 // bytes that were not read yet
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.rest == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), b.rest)]
	if c := b.conn; c.start < c.end {
		n = copy(p, c.buf[c.start:c.end])
		c.start += n
	} else if n, err = c.net.Read(p); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if b.rest -= int64(n); b.rest == 0 && err == nil {
		b.ctx.bodyRead()
		return n, io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }
