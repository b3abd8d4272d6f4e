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
	s.writing.start()
	defer s.writing.stop()
	s.used.Store(s.writing.began.Load())
	// Frames of writeDeflated are whole writes. Behind a long one, a control frame would be held.
	if conn := connOf(s.request); conn != nil && s.request.TLS == nil && len(message) > connBuffer-maxFrameHeader && !s.deflates(message) {
		conn.gather()
		defer conn.release()
	}
	err := s.writeFrames(message)
	if err != nil {
		s.end(closeGone, "the client has disconnected")
	}
	return err
}

// fragmentBytes is the size of the frames of a long message.
const fragmentBytes = 64 << 10

// deflates reports whether a message is sent by writeDeflated.
func (s *socket) deflates(message []byte) bool {
	return s.compressed && len(message) > fragmentBytes
}

// writeFrames sends a long message in several frames, between which pings are answered. The
// library ends a connection whose ping it cannot answer within 5 seconds.
func (s *socket) writeFrames(message []byte) error {
	if len(message) <= fragmentBytes {
		return s.conn.Write(s.endless, websocket.MessageText, message)
	}
	if s.deflates(message) {
		return s.writeDeflated(message)
	}
	to, err := s.conn.Writer(s.endless, websocket.MessageText)
	if err != nil {
		return err
	}
	for fragment := range slices.Chunk(message, fragmentBytes) {
		if _, err := to.Write(fragment); err != nil {
			return err
		}
	}
	return to.Close()
}
