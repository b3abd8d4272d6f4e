package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/jsonrpc"

	"github.com/coder/websocket"
)

// Why the server closes a connection, as clients read it. A client whose key has
// ended must not come back with it; all others may, at once or a little later.
const (
	closeGone    = websocket.StatusGoingAway
	closeKey     = websocket.StatusPolicyViolation
	closeBusy    = websocket.StatusTryAgainLater
	closeInvalid = websocket.StatusProtocolError

	reasonStopping = "the server is shutting down"
	reasonIdle     = "idle"
	reasonRevoked  = "invalid project id"
	reasonSlow     = "too slow: what is sent is not read"
	reasonFull     = "busy: too many connections"
)

// socket is one open WebSocket connection. Its messages are answered in parallel,
// each answer sent when it is ready.
type socket struct {
	handler *Handler
	server  *jsonrpc.Server
	key     string
	conn    *websocket.Conn

	base   context.Context // of the connection; done only when all is cut off
	ctx    context.Context // of the methods and streams of the connection
	cancel context.CancelFunc

	inFlight chan struct{} // holds one for each message that is not answered yet
	out      outbox
	streams  streams
	running  sync.WaitGroup // everything but the reader
	ending   atomic.Bool    // end was called: nothing more is answered

	used    atomic.Int64 // when a message was last received or sent, in Unix nanoseconds
	heard   atomic.Int64 // when the client last gave a sign of life, in Unix nanoseconds
	pinging atomic.Bool  // the client has been asked for one
}

func newSocket(ctx context.Context, h *Handler, server *jsonrpc.Server, key string, conn *websocket.Conn) *socket {
	s := &socket{handler: h, server: server, key: key, conn: conn, base: ctx}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.inFlight = make(chan struct{}, h.sockets.limits.InFlight)
	s.streams.max = h.sockets.limits.Streams
	s.out = outbox{
		// Whatever is in flight has room, and as much again has what streams send.
		maxMessages: h.sockets.limits.InFlight + h.sockets.limits.Queue,
		maxBytes:    h.sockets.limits.QueueBytes,
		run:         s.running.Go,
		write:       s.write,
	}
	s.touch()
	return s
}

func (s *socket) touch() {
	now := time.Now().UnixNano()
	s.used.Store(now)
	s.heard.Store(now)
}

// serve reads messages until the connection ends, and returns when nothing of it
// runs any more.
func (s *socket) serve() {
	err := s.read()
	s.handler.sockets.remove(s)
	s.cancel()
	s.out.close()
	switch {
	case s.ending.Load(), websocket.CloseStatus(err) != -1, isGone(err):
		_ = s.conn.CloseNow() // fails only if it is closed
	default:
		// The frames made no sense; what the library found has been told already
		// where it tells it.
		_ = s.conn.Close(closeInvalid, "invalid frame")
	}
	s.running.Wait()
}

// isGone says whether a connection was lost rather than misused.
func isGone(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}

// read takes one message after the other. While as many as may be are in flight
// it takes none, and the client, which then cannot send any more either, waits.
func (s *socket) read() error {
	for {
		_, message, err := s.conn.Reader(s.base)
		if err != nil {
			return err
		}
		request := s.handler.buffers.Get()
		if *request, err = s.receive(message, *request); err != nil {
			s.handler.buffers.Put(request)
			return err
		}
		s.touch()
		if s.ending.Load() {
			s.handler.buffers.Put(request)
			continue // on to the client's own close frame
		}
		if _, ok := s.handler.keys.Check(s.key); !ok {
			s.end(closeKey, reasonRevoked)
			continue
		}
		select {
		case s.inFlight <- struct{}{}:
			s.running.Go(func() { s.answer(request) })
		case <-s.ctx.Done():
			s.handler.buffers.Put(request)
		}
	}
}

// receive reads the whole of a message that has begun. One that does not come to
// its end in time ends the connection.
func (s *socket) receive(message io.Reader, buf []byte) ([]byte, error) {
	late := time.AfterFunc(bodyTime, func() { s.conn.CloseNow() })
	defer late.Stop()
	return readAll(message, buf, s.handler.bodies.limit+1) // the connection has the limit
}

// answer has a message answered and queues what is to be said.
func (s *socket) answer(request *[]byte) {
	buffers := &s.handler.buffers
	n := &notifier{streams: &s.streams, socket: s}
	ctx := newDeadlineContext(jsonrpc.WithNotifier(s.ctx, n), s.handler.requestTime)
	out := buffers.Get()
	*out = s.server.Answer(ctx, *request, *out)
	ctx.stop()
	buffers.Put(request)
	done := func() {
		buffers.Put(out)
		<-s.inFlight
	}
	if len(*out) == 0 { // notifications only
		done()
	} else if err := s.out.put(outgoing{*out, done}); err != nil {
		done()
		s.refused(err)
	}
	n.answered()
}

// send queues a message of a stream.
func (s *socket) send(message []byte) error {
	err := s.out.put(outgoing{message: message})
	s.refused(err)
	return err
}

// refused ends the connection of a client that has let its queue fill.
func (s *socket) refused(err error) {
	if errors.Is(err, errSlow) {
		s.end(closeBusy, reasonSlow)
	}
}

// write sends one message.
func (s *socket) write(message []byte) error {
	ctx, cancel := context.WithTimeout(s.base, writeTime)
	defer cancel()
	s.used.Store(time.Now().UnixNano())
	return s.conn.Write(ctx, websocket.MessageText, message)
}

// end closes the connection with a reason, without waiting for what is in flight.
// It returns at once; the reader's end follows.
func (s *socket) end(code websocket.StatusCode, reason string) {
	if s.ending.Swap(true) {
		return
	}
	s.cancel()
	s.handler.log.Debug("closing a connection", "code", int(code), "reason", reason)
	s.running.Go(func() { _ = s.conn.Close(code, reason) }) // one that is lost needs no closing
}

// drain answers what is in flight, as long as ctx is not done, and ends the connection.
func (s *socket) drain(ctx context.Context) {
	for range cap(s.inFlight) {
		select {
		case s.inFlight <- struct{}{}:
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
	}
	s.end(closeGone, reasonStopping)
}

// ping asks the client for a sign of life, and ends the connection if none comes.
func (s *socket) ping(timeout time.Duration) {
	defer s.pinging.Store(false)
	ctx, cancel := context.WithTimeout(s.base, timeout)
	defer cancel()
	if err := s.conn.Ping(ctx); err == nil {
		s.heard.Store(time.Now().UnixNano())
	} else if len(s.inFlight) == 0 {
		s.end(closeGone, "no answer to ping")
	}
}
