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

	"ashlar/jsonrpc"
	"ashlar/limit"

	"github.com/coder/websocket"
)

// The reasons for which the server closes a connection, as clients see them. A client whose
// key has ended must not reconnect with it; all others may, at once or a little later.
const (
	closeGone    = websocket.StatusGoingAway
	closeKey     = websocket.StatusPolicyViolation
	closeBusy    = websocket.StatusTryAgainLater
	closeSize    = websocket.StatusMessageTooBig
	closeInvalid = websocket.StatusProtocolError

	reasonStopping = "the server is shutting down"
	reasonUnserved = "the network is no longer served"
	reasonIdle     = "idle"
	reasonRevoked  = "invalid project id"
	reasonRules    = "the rules of the key have changed: connect again"
	// reasonRestricted is at most 123 bytes, so it cannot name the network and the method.
	reasonRestricted = "the network restricts the method of a subscription to keys whose rules list it"
	reasonSlow       = "too slow: messages are not read in time"
	reasonLost       = "messages of a subscription were lost: connect again"
	reasonMemory     = "the server is busy: try again later"
)

// socket is one open WebSocket connection. Its messages are answered in parallel, and each
// answer is sent when it is ready.
type socket struct {
	handler *Handler
	request *http.Request // the handshake
	network string
	version string // of the methods
	key     string
	conn    *websocket.Conn
	raw     *sentConn // below conn
	// compressed says that long messages are compressed.
	compressed bool

	ctx    context.Context // for the connection's methods and streams
	cancel context.CancelFunc
	// endless is the context passed to the WebSocket library, which does extra work per
	// frame for a context that can be canceled.
	endless context.Context

	inFlight chan struct{} // one element per unanswered message
	stepping chan struct{} // has an element while a stream makes and sends a message
	out      outbox
	streams  streams
	paying   atomic.Pointer[payer] // payer for messages of streams; set before the first
	running  sync.WaitGroup        // all goroutines except the reader
	leaving  atomic.Bool           // drain was called
	ending   atomic.Bool           // end was called; no further answers

	used    atomic.Int64 // when a message was last received or sent, in Unix nanoseconds
	heard   atomic.Int64 // when the client was last heard from, in Unix nanoseconds
	pinging atomic.Bool  // a ping is unanswered

	receiving stopwatch // of the message being received
	writing   stopwatch // of the message being sent
}

func newSocket(h *Handler, r *http.Request, network string, route route, who holder, conn *websocket.Conn) *socket {
	limits := h.current.Load().sockets
	s := &socket{handler: h, request: r, network: network, version: route.version, key: route.key, conn: conn}
	s.ctx, s.cancel = context.WithCancel(s.base())
	s.endless = context.WithoutCancel(s.base())
	s.inFlight = make(chan struct{}, limits.InFlight)
	s.stepping = make(chan struct{}, 1)
	holding := h.days.holding(who)
	s.streams.max, s.streams.memory, s.streams.holding = limits.Streams, h.memory, holding
	s.out = outbox{
		memory: h.memory, holding: holding,
		// Enough for all answers in flight, plus the queue of messages of streams.
		maxMessages: limits.InFlight + limits.Queue,
		maxBytes:    limits.QueueBytes,
		write:       s.write,
		changed:     make(chan struct{}, 1),
	}
	s.touch()
	return s
}

// base returns the context of the connection itself, which is canceled only when everything
// is aborted.
func (s *socket) base() context.Context { return s.request.Context() }

func (s *socket) touch() {
	now := time.Now().UnixNano()
	s.used.Store(now)
	s.heard.Store(now)
}

// serve reads messages until the connection ends, and returns when none of its goroutines
// run any more.
func (s *socket) serve() {
	cut := make(chan struct{})
	keep := context.AfterFunc(s.base(), func() {
		defer close(cut)
		_ = s.conn.CloseNow() // fails only if already closed
	})
	defer func() {
		if !keep() {
			<-cut
		}
	}()
	err := s.read()
	s.handler.sockets.remove(s)
	ended := s.ending.Swap(true) // no frame of a message follows the close frame
	s.cancel()
	s.out.close()
	if ended || websocket.CloseStatus(err) != -1 || isGone(err) {
		_ = s.conn.CloseNow() // fails only if already closed
	} else {
		_ = s.conn.Close(closeOf(err)) // for some faults, the library has already closed it with its own code
	}
	s.running.Wait()
}

// closeOf returns with what code and reason an error of a message closes its connection.
func closeOf(err error) (websocket.StatusCode, string) {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return closeBusy, refused.err.Message
	case errors.Is(err, limit.ErrMemory):
		return closeBusy, reasonMemory
	case errors.Is(err, errTooLarge):
		return closeSize, err.Error()
	}
	return closeInvalid, "invalid frame"
}

// isGone reports whether an error means a lost connection rather than a misuse.
func isGone(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}

// read reads one message after the other. While the maximum number of messages is in flight, too
// many bytes of answers are unsent, or there is no memory for another message, it reads none, so that
// TCP makes the client wait.
func (s *socket) read() error {
	for {
		_, message, err := s.conn.Reader(s.endless) // answers pings until a message begins
		if err != nil {
			return err
		}
		compressed := s.raw.marks.take()
		lease := s.await()
		settings := s.handler.current.Load()
		e := s.admit(settings)
		if e == nil { // read on until the client's close frame
			lease.Release()
			if err := s.skip(message, settings.bodyBytes); err != nil {
				return err
			}
			continue
		}
		e.lease = lease
		request := e.claim(&s.handler.buffers, s.handler.buffers.Get())
		if *request, err = s.receive(message, *request, e); err != nil {
			s.drop(e, request)
			return err
		}
		s.touch()
		e.begin(s.ctx) // excludes the time the client took to send it
		select {
		case s.inFlight <- struct{}{}:
			s.running.Add(1)
			s.handler.sockets.workers.run(func() {
				defer s.running.Done()
				if compressed && !s.inflate(e, request) {
					return
				}
				s.answer(e, request)
			})
		case <-s.ctx.Done():
			s.drop(e, request)
		}
	}
}

const (
	// freeMessages is how many messages in flight of a connection are not counted while they are
	// short. Together they are as small as the connection itself.
	freeMessages = 2
	// inFlightBytes is the memory that is counted for each further one: up to 8 KiB of text, which a
	// lease does not count by itself, and 4 KiB for the exchange and its goroutine.
	inFlightBytes = 12 << 10
)

// await waits until another message may be read, and returns a lease on memory for it. The memory is
// taken before the message is read, not when its answer is ready. So a client that does not read is
// bounded, and one that reads is slowed down when there is no memory, but loses no answer. The first
// freeMessages never wait for memory, so the connection always goes on.
func (s *socket) await() limit.Lease {
	lease := limit.Lease{Budget: s.out.memory, Caller: s.out.holding}
	s.out.wait(s.ctx.Done(), func() bool {
		return len(s.inFlight) < freeMessages || lease.HoldAll(inFlightBytes)
	})
	return lease
}

// drop releases the memory of a message.
func (s *socket) drop(e *exchange, request *[]byte) {
	s.handler.buffers.Put(request)
	e.lease.Release()
}

// skip reads and discards a message.
func (s *socket) skip(message io.Reader, most int) error {
	s.receiving.start()
	defer s.receiving.stop()
	defer s.raw.end(s.raw.begin(most))
	n, err := io.Copy(io.Discard, io.LimitReader(message, int64(most)+1))
	if n > int64(most) || errors.Is(err, errTooLarge) {
		s.handler.refusals.count(RefusedSize)
		return tooLarge(most)
	}
	return err
}

// tooLarge returns the error for the client about a message over the limit.
func tooLarge(most int) error {
	return fmt.Errorf("%w: expected at most %d bytes", errTooLarge, most)
}

// receive reads the rest of a message, as it is sent. If it does not end in time, if there is no memory
// for it, or if the key cannot pay for it, the connection ends.
func (s *socket) receive(message io.Reader, buf []byte, e *exchange) ([]byte, error) {
	s.receiving.start()
	defer s.receiving.stop()
	from := s.raw.begin(e.settings.bodyBytes)
	buf, err := readAll(message, buf, e)
	if sent := s.raw.end(from); sent > sentBytes*len(buf)+bytesPerCredit {
		e.sent = sent
	}
	return buf, s.countRefusal(e, err)
}

// countRefusal counts the refusal of a message because of an error, and returns the error for the client.
func (s *socket) countRefusal(e *exchange, err error) error {
	var refused *refusal
	if errors.As(err, &refused) || errors.Is(err, errTooLarge) || errors.Is(err, limit.ErrMemory) {
		e.countRefused(s.handler.bodyRefusal(e.settings, err))
	}
	if errors.Is(err, errTooLarge) {
		return tooLarge(e.settings.bodyBytes)
	}
	return err
}

// admit checks the connection's key again and returns a new exchange for a message, or nil
// if the connection has ended or must end.
func (s *socket) admit(settings *settings) *exchange {
	network := settings.networks.byName[s.network].at(s.version)
	if s.ending.Load() || network == nil {
		return nil
	}
	key, reason := s.check(settings, network)
	if reason != "" {
		s.end(closeKey, reason)
		return nil
	}
	return newExchange(s.ctx, settings, network, key, settings.client(s.request), originOf(s.request))
}

// answer answers a message and sends the result.
func (s *socket) answer(e *exchange, request *[]byte) {
	n := &notifier{streams: &s.streams, socket: s, exchange: e}
	e.notifier, e.parent = n, jsonrpc.WithNotifier(e.parent, n)
	out := e.claim(&s.handler.buffers, s.handler.answerBuffer(*request))
	*out = e.respond(*request, *out)
	e.leave()
	e.stop()
	done := func() {
		s.handler.putAnswer(*request, out)
		s.drop(e, request)
		<-s.inFlight
		s.out.notify() // after the message's memory and place have become free
	}
	if !e.fits(*out) {
		n.drop(*out)
		refused := busy(RefusedMemory)
		e.countRefused(refused)
		s.handler.putAnswer(*request, out)
		out = new([]byte)
		*out = jsonrpc.AppendError(nil, requestIDOf(*request), e.refuse(refused))
	}
	var first bool
	if len(*out) == 0 { // only notifications
		done()
	} else {
		var err error
		if first, err = s.out.put(outgoing{parts: [][]byte{*out}, done: done}); err != nil {
			done()
			s.refused(err)
		}
	}
	n.answered()
	if first { // a goroutine would cost more than the write
		s.out.drain()
	}
}

// refused ends the connection of a client whose queue is full, or that would miss messages.
func (s *socket) refused(err error) {
	switch {
	case errors.Is(err, jsonrpc.ErrSlow):
		s.end(closeBusy, reasonSlow)
	case errors.Is(err, jsonrpc.ErrLost):
		s.end(closeBusy, reasonLost)
	case errors.Is(err, limit.ErrMemory):
		s.end(closeBusy, reasonMemory)
	}
}

// end closes the connection with a reason. It does not wait for messages in flight and
// returns at once; the reader ends later.
func (s *socket) end(code websocket.StatusCode, reason string) {
	if s.ending.Swap(true) {
		return
	}
	s.cancel()
	s.handler.log.Debug("closing a connection", "code", int(code), "reason", reason)
	s.running.Go(func() { _ = s.conn.Close(code, reason) }) // fails only if the connection is lost
}

// drain waits for messages in flight until ctx is done, then ends the connection. It must be
// called at most once, see leaving.
func (s *socket) drain(ctx context.Context, reason string) {
	for range cap(s.inFlight) {
		select {
		case s.inFlight <- struct{}{}:
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
	}
	s.end(closeGone, reason)
}

// ping sends a ping, and ends the connection if the client does not answer.
func (s *socket) ping(timeout time.Duration) {
	defer s.pinging.Store(false)
	ctx, cancel := context.WithTimeout(s.base(), timeout)
	defer cancel()
	behind := s.writing.running()
	err := s.conn.Ping(ctx)
	if err == nil {
		s.heard.Store(time.Now().UnixNano())
		return
	}
	// While the maximum number of messages is in flight nothing is read, not even a pong. A ping
	// is sent after the message that is being written, which has a time limit of its own.
	waits := len(s.inFlight) > 0 || behind || s.writing.running()
	if !waits || !errors.Is(err, context.DeadlineExceeded) {
		s.end(closeGone, "no answer to ping")
	}
}
