package gateway

import (
	"slices"

	"ashlar/limit"

	"github.com/coder/websocket"
)

// maxFrameHeader is the size of the largest frame header that a server sends.
const maxFrameHeader = 10

// write sends one message. If the client does not read it in time, the connection ends, and
// its unanswered messages are dropped. Parts are joined here, where other connections do
// not wait for it.
func (s *socket) write(parts [][]byte) error {
	if len(parts) == 1 {
		return s.writeMessage(parts[0])
	}
	joined, lease := s.joined(parts)
	defer lease.Release()
	defer s.handler.buffers.Put(joined)
	return s.writeMessage(*joined)
}

// joined returns the parts of a message in one buffer, and a lease on it, because it may be a large
// one that another message left behind. The message itself is counted already.
func (s *socket) joined(parts [][]byte) (*[]byte, limit.Lease) {
	lease := limit.Lease{Budget: s.out.memory, Caller: s.out.holding}
	joined := s.handler.buffers.Get()
	if cap(*joined) > smallBuffer && !lease.Hold(cap(*joined)) {
		s.handler.buffers.Put(joined)
		joined = new([]byte)
	}
	for _, part := range parts {
		*joined = append(*joined, part...)
	}
	return joined, lease
}

// writeMessage sends a message in one part.
func (s *socket) writeMessage(message []byte) error {
	lease := limit.Lease{Budget: s.out.memory, Caller: s.out.holding}
	defer lease.Release()
	form := s.formOf(message, &lease)
	s.writing.start()
	defer s.writing.stop()
	s.used.Store(s.writing.began.Load())
	// Frames of writeDeflated are whole writes. Behind a long one, a control frame would be held.
	if conn := connOf(s.request); conn != nil && s.request.TLS == nil && len(message) > connBuffer-maxFrameHeader && form != formDeflated {
		conn.gather()
		defer conn.release()
	}
	err := s.writeFrames(message, form)
	if err != nil {
		s.end(closeGone, "the client has disconnected")
	}
	return err
}

// fragmentBytes is the size of the frames of a long message.
const fragmentBytes = 64 << 10

// form is how a message is sent.
type form int

const (
	formPlain    form = iota
	formZipped        // in one frame, compressed by the library
	formDeflated      // in several frames, see writeDeflated
)

// formOf returns how a message is sent. What its compression takes until the client has read it is
// added to a lease. If there is no memory for that, the message is sent as it is.
func (s *socket) formOf(message []byte, lease *limit.Lease) form {
	switch {
	case !s.compressed || len(message) < minGzip:
		return formPlain
	case len(message) > fragmentBytes && lease.Hold(deflaterBytes):
		return formDeflated
	case len(message) <= fragmentBytes && lease.Hold(len(message)):
		return formZipped
	}
	return formPlain
}

// writeFrames sends a message, a long one in several frames, between which pings are answered. The
// library ends a connection whose ping it cannot answer within 5 seconds.
func (s *socket) writeFrames(message []byte, form form) error {
	first := fragmentBytes
	switch {
	case form == formDeflated:
		return s.writeDeflated(message)
	case form == formPlain && s.compressed:
		first = minGzip - 1 // the library compresses no message whose first frame is shorter than its threshold
	}
	if form == formZipped || len(message) <= first {
		return s.conn.Write(s.endless, websocket.MessageText, message)
	}
	to, err := s.conn.Writer(s.endless, websocket.MessageText)
	if err != nil {
		return err
	}
	if _, err := to.Write(message[:first]); err != nil {
		return err
	}
	for fragment := range slices.Chunk(message[first:], fragmentBytes) {
		if _, err := to.Write(fragment); err != nil {
			return err
		}
	}
	return to.Close()
}
