package gateway

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"net/http"
	"sync"

	"github.com/klauspost/compress/flate"
)

// The library compresses only a whole message into one frame, or into frames of 240 bytes, as
// small as the writes of compress/flate. So long compressed messages are put into frames here. The
// library writes its control frames to the same connection, each in one call, so they are between
// these frames and never within one.

// hijacked keeps the connection that the library takes over.
type hijacked struct {
	http.ResponseWriter
	conn *sentConn
}

// Hijack implements http.Hijacker. What has arrived already is read through the connection, too.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &sentConn{Conn: conn}
	if early, _ := buffered.Reader.Peek(buffered.Reader.Buffered()); len(early) > 0 { // documented not to fail
		h.conn.early = bytes.Clone(early)
	}
	buffered.Reader.Reset(h.conn)
	return h.conn, buffered, nil
}

const (
	// deflatedBytes is the size of the frames of a long compressed message: the most that a
	// length of two bytes can state.
	deflatedBytes = 1<<16 - 1
	// frameRoom is the size of a frame's header with such a length.
	frameRoom = 4
	// flushTail is how many bytes end a flushed deflate stream. RFC 7692 leaves them out.
	flushTail = 4

	frameFinal      = 0x80
	frameCompressed = 0x40 // only in the first frame of a message
	frameText       = 0x1
)

// frames is an io.Writer that sends a compressed message in frames.
type frames struct {
	s    *socket
	head byte   // first byte of the next frame
	buf  []byte // room for the header of the next frame, and its contents
}

// deflater is what sending a compressed message takes.
type deflater struct {
	frames
	flate *flate.Writer
}

// deflaterBytes is the memory of a deflater.
const deflaterBytes = 848 << 10

// deflaters are of type *deflater. They are large, so not every connection has one.
var deflaters = sync.Pool{New: func() any {
	d := &deflater{frames: frames{buf: make([]byte, 0, frameRoom+deflatedBytes+flushTail)}}
	d.flate, _ = flate.NewWriter(&d.frames, flate.BestSpeed) // fails only for levels that do not exist
	return d
}}

// writeDeflated sends a message compressed, without the context of earlier ones.
func (s *socket) writeDeflated(message []byte) error {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.frames = frames{s: s, head: frameText | frameCompressed, buf: d.buf[:frameRoom]}
	defer func() { d.s = nil }()
	d.flate.Reset(&d.frames)
	if _, err := d.flate.Write(message); err != nil {
		return err
	}
	if err := d.flate.Flush(); err != nil {
		return err
	}
	d.head |= frameFinal
	return d.send(len(d.buf) - frameRoom - flushTail)
}

// Write implements io.Writer. It keeps the end, which may be flushTail.
func (f *frames) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		some := min(len(p), cap(f.buf)-len(f.buf))
		f.buf = append(f.buf, p[:some]...)
		p, n = p[some:], n+some
		if len(f.buf) < cap(f.buf) {
			break
		}
		if err := f.send(deflatedBytes); err != nil {
			return n, err
		}
	}
	return n, nil
}

// send writes a frame with the first bytes of what is buffered, and keeps the rest.
func (f *frames) send(bytes int) error {
	if f.s.ending.Load() { // the library sends a close frame
		return net.ErrClosed
	}
	frame := f.buf[:frameRoom+bytes]
	if bytes < 126 {
		frame = frame[frameRoom-2:]
		frame[1] = byte(bytes)
	} else {
		frame[1] = 126
		binary.BigEndian.PutUint16(frame[2:], uint16(bytes))
	}
	frame[0] = f.head
	f.head = 0 // the next one continues the message
	if _, err := f.s.raw.Write(frame); err != nil {
		return err
	}
	rest := copy(f.buf[frameRoom:], f.buf[frameRoom+bytes:])
	f.buf = f.buf[:frameRoom+rest]
	return nil
}
