package gateway

import (
	"errors"
	"io"
	"math"
	"sync"

	"ashlar/jsonrpc"

	"github.com/klauspost/compress/flate"
)

// The library decompresses while it reads, so each connection with an unfinished message would hold a
// decompressor. It also stops at a block that is marked as final, and takes what is left of the message for
// frames. RFC 7692 allows such blocks anywhere in a message. So the library sees no compressed messages: what
// marks them is removed below it, and they are decompressed here once they are complete.

// marks finds the first frames of messages in what a client sends, and removes the bit that marks a message
// as compressed. The bit stays where it is invalid, for the library to refuse it.
type marks struct {
	agreed bool // compressed messages were agreed on in the handshake

	part   framePart
	masked bool
	length uint64 // of the payload, as far as it was read
	digits int    // bytes of length that are missing
	rest   uint64 // bytes of mask and payload that are missing

	mu     sync.Mutex // the library's closing handshake reads, too
	queued []bool     // guarded by mu: per message that was read but not taken, whether it was compressed
}

// framePart is the part of a frame that comes next.
type framePart byte

const (
	partFirst   framePart = iota // of two bytes
	partSecond                   // with a length, or how many bytes it has
	partLength                   // longer than the second byte can state
	partPayload                  // with its mask
)

const (
	// mostQueued bounds the messages that are read but not taken. While messages are taken, there are
	// fewer: as many as a buffer of the library has frames. Messages that follow a close frame of the
	// server are not taken any more.
	mostQueued = 2 << 10

	frameBinary = 0x2
	frameOpcode = 0xf
	frameMask   = 0x80 // in the second byte
	maskBytes   = 4
)

// remove removes the marks from the next bytes of a connection.
func (m *marks) remove(p []byte) {
	for len(p) > 0 {
		read := 1
		switch m.part {
		case partFirst:
			m.first(&p[0])
		case partSecond:
			m.second(p[0])
		case partLength:
			m.length = m.length<<8 | uint64(p[0])
			m.digits--
		case partPayload:
			read = int(min(m.rest, uint64(len(p))))
			m.rest -= uint64(read)
		}
		p = p[read:]
		m.next()
	}
}

func (m *marks) first(b *byte) {
	m.part = partSecond
	if opcode := *b & frameOpcode; opcode != frameText && opcode != frameBinary {
		return
	}
	compressed := m.agreed && *b&frameCompressed != 0
	if compressed {
		*b &^= frameCompressed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queued) < mostQueued {
		m.queued = append(m.queued, compressed)
	}
}

func (m *marks) second(b byte) {
	m.masked = b&frameMask != 0
	m.part, m.length, m.digits = partLength, 0, 0
	switch length := b &^ frameMask; length {
	case 126:
		m.digits = 2
	case 127:
		m.digits = 8
	default:
		m.length = uint64(length)
	}
}

// next goes on to the next part of a frame, if the present one is complete.
func (m *marks) next() {
	if m.part == partLength && m.digits == 0 {
		m.part, m.rest = partPayload, min(m.length, math.MaxInt64)
		if m.masked {
			m.rest += maskBytes
		}
	}
	if m.part == partPayload && m.rest == 0 {
		m.part = partFirst
	}
}

// take returns whether the next message is compressed. It is called once for each that the library returns.
func (m *marks) take() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queued) == 0 { // more than mostQueued
		return false
	}
	compressed := m.queued[0]
	m.queued = m.queued[:copy(m.queued, m.queued[1:])]
	return compressed
}

// inflate replaces a compressed message in flight with what it stands for. It does so beside the reader,
// because it may wait for a slot of heavy calls. If it fails, it refuses the message or ends the connection,
// and returns false.
func (s *socket) inflate(e *exchange, message *[]byte) bool {
	claimed := e.claimed
	text := e.claim(&s.handler.buffers, s.handler.buffers.Get())
	body, err := decompress(*message, &inflaters, *text, e)
	*text, *message = *message, body
	s.handler.buffers.Put(text)
	e.claimed = claimed
	e.lease.Shrink(max(inFlightBytes, cap(body)))
	if err == nil {
		return true
	}
	e.stop()
	done := func() {
		s.drop(e, message)
		<-s.inFlight
		s.out.notify() // after the message's memory and place have become free
	}
	err = s.countRefusal(e, err)
	var refused *refusal
	if !errors.As(err, &refused) || refused.reason != RefusedBusy {
		done()
		s.end(closeOf(err))
		return false
	}
	answer := jsonrpc.AppendError(nil, requestIDOf(*message), refused.err) // null if nothing is decompressed
	first, err := s.out.put(outgoing{parts: [][]byte{answer}, done: done})
	if err != nil {
		done()
		s.refused(err)
	} else if first {
		s.out.drain()
	}
	return false
}

// inflaters are of type *inflater.
var inflaters = sync.Pool{New: func() any {
	z := new(inflater)
	z.flate = flate.NewReader(&z.rest)
	return z
}}

// inflater decompresses a message, whose blocks may be of several streams. A stream begins after a final
// block, at the next whole byte.
type inflater struct {
	rest  unreadMessage
	flate io.ReadCloser
}

func (z *inflater) reset(message []byte) error {
	z.rest = unreadMessage{message, messageEnd}
	return z.next()
}

// next begins a stream.
func (z *inflater) next() error { return z.flate.(flate.Resetter).Reset(&z.rest, nil) }

// Read implements io.Reader.
func (z *inflater) Read(p []byte) (int, error) {
	for {
		n, err := z.flate.Read(p)
		switch {
		case err == io.ErrUnexpectedEOF, err == io.EOF && len(z.rest.message) == 0:
			return n, io.EOF
		case err != io.EOF:
			return n, err
		}
		if err := z.next(); err != nil || n > 0 {
			return n, err
		}
	}
}

// messageEnd is what RFC 7692 leaves out at the end of a message. It ends a block, but no stream.
const messageEnd = "\x00\x00\xff\xff"

// unreadMessage is what was not read yet of a message and of messageEnd. It is read byte by byte, so that
// nothing behind a stream is read with it.
type unreadMessage struct {
	message []byte
	end     string
}

// ReadByte implements io.ByteReader.
func (u *unreadMessage) ReadByte() (b byte, err error) {
	switch {
	case len(u.message) > 0:
		b, u.message = u.message[0], u.message[1:]
	case len(u.end) > 0:
		b, u.end = u.end[0], u.end[1:]
	default:
		err = io.EOF
	}
	return b, err
}

// Read implements io.Reader.
func (u *unreadMessage) Read(p []byte) (int, error) {
	n := copy(p, u.message)
	u.message = u.message[n:]
	if n == 0 {
		n = copy(p, u.end)
		u.end = u.end[n:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
