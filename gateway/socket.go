package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/account"
	"ashlar/jsonrpc"

	"github.com/coder/websocket"
)

// Why the server closes a connection, as clients read it. A client whose key has
// ended must not come back with it; all others may, at once or a little later.
const (
	closeGone    = websocket.StatusGoingAway
	closeKey     = websocket.StatusPolicyViolation
	closeBusy    = websocket.StatusTryAgainLater
	closeSize    = websocket.StatusMessageTooBig
	closeInvalid = websocket.StatusProtocolError

	reasonStopping = "the server is shutting down"
	reasonIdle     = "idle"
	reasonRevoked  = "invalid project id"
	reasonRules    = "what the key may be used for has changed: connect again"
	reasonSlow     = "too slow: what is sent is not read"
	reasonLost     = "what was subscribed to could not be read: connect again"
	reasonMemory   = "busy: too much is being asked and answered"
)

// socket is one open WebSocket connection. Its messages are answered in parallel,
// each answer sent when it is ready.
type socket struct {
	handler *Handler
	request *http.Request // that became the connection
	network string
	key     string
	conn    *websocket.Conn

	ctx    context.Context // of the methods and streams of the connection
	cancel context.CancelFunc
	// endless is what the library gets as a context: for one that can be done it
	// registers with it for every frame.
	endless context.Context

	inFlight chan struct{} // holds one for each message that is not answered yet
	out      outbox
	streams  streams
	paying   atomic.Pointer[payer] // for messages of streams; set before the first
	running  sync.WaitGroup        // everything but the reader
	ending   atomic.Bool           // end was called: nothing more is answered

	used    atomic.Int64 // when a message was last received or sent, in Unix nanoseconds
	heard   atomic.Int64 // when the client last gave a sign of life, in Unix nanoseconds
	pinging atomic.Bool  // the client has been asked for one

	receiving stopwatch // of a message that has begun to come
	writing   stopwatch // of a message that is being sent
}

// stopwatch is when something began that may take too long, in Unix nanoseconds; 0
// while nothing is under way. It is read by the sweep over all connections, so that no
// message needs a timer.
type stopwatch struct{ began atomic.Int64 }

func (w *stopwatch) start() { w.began.Store(time.Now().UnixNano()) }
func (w *stopwatch) stop()  { w.began.Store(0) }

// over says whether more than most has passed since start.
func (w *stopwatch) over(now time.Time, most time.Duration) bool {
	began := w.began.Load()
	return began != 0 && now.Sub(time.Unix(0, began)) > most
}

func newSocket(h *Handler, r *http.Request, network, key string, who holder, conn *websocket.Conn) *socket {
	limits := h.current.Load().sockets
	s := &socket{handler: h, request: r, network: network, key: key, conn: conn}
	s.ctx, s.cancel = context.WithCancel(s.base())
	s.endless = context.WithoutCancel(s.base())
	s.inFlight = make(chan struct{}, limits.InFlight)
	holding := h.days.holding(who)
	s.streams.max, s.streams.memory, s.streams.holding = limits.Streams, h.memory, holding
	s.out = outbox{
		memory: h.memory, holding: holding,
		// Whatever is in flight has room, and as much again has what streams send.
		maxMessages: limits.InFlight + limits.Queue,
		maxBytes:    limits.QueueBytes,
		write:       s.write,
	}
	s.touch()
	return s
}

// base is the context of the connection itself, which is done only when everything is
// cut off.
func (s *socket) base() context.Context { return s.request.Context() }

func (s *socket) touch() {
	now := time.Now().UnixNano()
	s.used.Store(now)
	s.heard.Store(now)
}

// serve reads messages until the connection ends, and returns when nothing of it
// runs any more.
func (s *socket) serve() {
	cut := make(chan struct{})
	keep := context.AfterFunc(s.base(), func() {
		defer close(cut)
		_ = s.conn.CloseNow() // fails only if it is closed
	})
	defer func() {
		if !keep() {
			<-cut
		}
	}()
	err := s.read()
	s.handler.sockets.remove(s)
	s.cancel()
	s.out.close()
	var refused *refusal
	switch {
	case s.ending.Load(), websocket.CloseStatus(err) != -1, isGone(err):
		_ = s.conn.CloseNow() // fails only if it is closed
	case errors.As(err, &refused):
		_ = s.conn.Close(closeBusy, refused.err.Message)
	case errors.Is(err, errNoMemory):
		_ = s.conn.Close(closeBusy, reasonMemory)
	case errors.Is(err, errTooLarge):
		_ = s.conn.Close(closeSize, err.Error())
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
		_, message, err := s.conn.Reader(s.endless)
		if err != nil {
			return err
		}
		settings := s.handler.current.Load()
		e := s.admit(settings)
		if e == nil { // on to the client's own close frame
			if err := s.skip(message, settings.bodyBytes); err != nil {
				return err
			}
			continue
		}
		request := s.handler.buffers.Get()
		if *request, err = s.receive(message, *request, e); err != nil {
			s.drop(e, request)
			return err
		}
		s.touch()
		e.begin(s.ctx) // its time does not count what the client took to send it
		select {
		case s.inFlight <- struct{}{}:
			s.running.Go(func() { s.answer(e, request) })
		case <-s.ctx.Done():
			s.drop(e, request)
		}
	}
}

// drop gives back what a message holds.
func (s *socket) drop(e *exchange, request *[]byte) {
	s.handler.buffers.Put(request)
	e.lease.Release()
}

// skip reads a message that is not answered.
func (s *socket) skip(message io.Reader, most int) error {
	s.receiving.start()
	defer s.receiving.stop()
	n, err := io.Copy(io.Discard, io.LimitReader(message, int64(most)+1))
	if n > int64(most) {
		return s.tooLarge(most)
	}
	return err
}

// tooLarge counts a message over the limit, and returns the error that its client reads.
func (s *socket) tooLarge(most int) error {
	s.handler.refusals.count(RefusedSize)
	return fmt.Errorf("%w: expected at most %d bytes", errTooLarge, most)
}

// receive reads the whole of a message that has begun. One that does not end in time ends
// the connection, as does one for which there is no memory or that the key cannot pay for.
func (s *socket) receive(message io.Reader, buf []byte, e *exchange) ([]byte, error) {
	s.receiving.start()
	defer s.receiving.stop()
	buf, err := readAll(message, buf, e)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		s.handler.refusals.count(refused.reason)
	case errors.Is(err, errTooLarge):
		err = s.tooLarge(e.settings.bodyBytes)
	case errors.Is(err, errNoMemory):
		s.handler.refusals.count(RefusedMemory)
	}
	return buf, err
}

// admit looks at the connection's key as if it had just come, and returns what a
// message is answered in; nil where the connection has ended or is to end.
func (s *socket) admit(settings *settings) *exchange {
	network := settings.networks.byName[s.network]
	if s.ending.Load() || network == nil {
		return nil
	}
	key, reason := s.check(settings, network)
	if reason != "" {
		s.end(closeKey, reason)
		return nil
	}
	return newExchange(s.ctx, settings, network, key, settings.client(s.request))
}

// check returns the connection's key, and why the connection would not be let in with it
// now or may not go on with what it has begun; empty where it may.
func (s *socket) check(settings *settings, network *served) (key *account.Key, reason string) {
	key, ok := s.handler.keys.Check(s.key)
	if !ok || key.Guarded && !proves(key, s.request) {
		return nil, reasonRevoked
	}
	if key.Rules != nil && network != nil {
		if r := settings.allowed(key.Rules, s.request, network); r != nil {
			s.handler.refusals.count(r.reason)
			return nil, r.err.Message
		}
	}
	if !s.streams.allowed(key.Rules) {
		return nil, reasonRules
	}
	return key, ""
}

// answer has a message answered and sends the answer.
func (s *socket) answer(e *exchange, request *[]byte) {
	n := &notifier{streams: &s.streams, socket: s, exchange: e}
	e.parent = jsonrpc.WithNotifier(e.parent, n)
	out := s.handler.answerBuffer(*request)
	*out = e.respond(*request, *out)
	e.stop()
	done := func() {
		s.handler.putAnswer(*request, out)
		s.drop(e, request)
		<-s.inFlight
	}
	var first bool
	var err error
	if len(*out) == 0 { // notifications only
		done()
	} else if !e.holds(*out) {
		done()
		s.handler.refusals.count(RefusedMemory)
		s.end(closeBusy, reasonMemory)
	} else if first, err = s.out.put(outgoing{parts: [][]byte{*out}, done: done}); err != nil {
		done()
		s.refused(err)
	}
	n.answered()
	if first { // a goroutine for the writing would cost more than it
		s.out.drain()
	}
}

// refused ends the connection of a client whose queue is full, or that would miss a message.
func (s *socket) refused(err error) {
	switch {
	case errors.Is(err, jsonrpc.ErrSlow):
		s.end(closeBusy, reasonSlow)
	case errors.Is(err, jsonrpc.ErrLost):
		s.end(closeBusy, reasonLost)
	}
}

// write sends one message. A message that the client does not accept in time, or at all,
// ends the connection: what it has sent before is not answered any more. Parts are joined
// here, where no other connection waits for it.
func (s *socket) write(parts [][]byte) error {
	var message []byte
	if len(parts) == 1 {
		message = parts[0]
	} else {
		joined := s.handler.buffers.Get()
		defer s.handler.buffers.Put(joined)
		for _, part := range parts {
			*joined = append(*joined, part...)
		}
		message = *joined
	}
	s.writing.start()
	defer s.writing.stop()
	s.used.Store(s.writing.began.Load())
	err := s.conn.Write(s.endless, websocket.MessageText, message)
	if err != nil {
		s.end(closeGone, "the client has left")
	}
	return err
}

// end closes the connection with a reason, without waiting for messages in flight.
// It returns at once; the reader's end follows.
func (s *socket) end(code websocket.StatusCode, reason string) {
	if s.ending.Swap(true) {
		return
	}
	s.cancel()
	s.handler.log.Debug("closing a connection", "code", int(code), "reason", reason)
	s.running.Go(func() { _ = s.conn.Close(code, reason) }) // one that is lost needs no closing
}

// drain waits until messages in flight are answered or ctx is done, and ends the connection.
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
	ctx, cancel := context.WithTimeout(s.base(), timeout)
	defer cancel()
	err := s.conn.Ping(ctx)
	if err == nil {
		s.heard.Store(time.Now().UnixNano())
		return
	}
	// While as many messages as may be are in flight nothing is read, not even the answer.
	if len(s.inFlight) == 0 || !errors.Is(err, context.DeadlineExceeded) {
		s.end(closeGone, "no answer to ping")
	}
}
