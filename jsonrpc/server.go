package jsonrpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// What geth allows, and what a Server does where its Config leaves a limit at zero.
const (
	DefaultBatchCalls = 1000
	DefaultBatchBytes = 25_000_000
	// DefaultAnswerBytes is more than geth's: there is no limit on one answer there.
	DefaultAnswerBytes = 100_000_000
)

// maxMethodName bounds, in bytes, what is echoed of a method nobody knows.
const maxMethodName = 2048

// Config is how a [Server] behaves. Its zero value is a good one.
type Config struct {
	BatchCalls  int          // most calls in one batch; 0: DefaultBatchCalls
	BatchBytes  int          // most bytes in the answer to a batch; 0: DefaultBatchBytes
	AnswerBytes int          // most bytes in the result of one call, or in its error; 0: DefaultAnswerBytes
	Observer    Observer     // told of every call; may be nil
	Log         *slog.Logger // panics and errors that are no *Error; nil: slog.Default()
	// Parse, if not nil, runs the parsing of requests of more than LongRequest bytes, so
	// that a transport can bound how many are parsed at once. It either calls parse or
	// returns why it did not.
	Parse func(ctx context.Context, parse func()) error
}

// LongRequest is the size in bytes above which Config.Parse is called. Parsing as many
// bytes takes milliseconds at most.
const LongRequest = 256 << 10

// Observer is told of every call that has ended, for metrics. It is called from
// many goroutines at once. method is the name of a method that exists, or empty:
// what a client made up must not become the label of a metric. code is the
// error's code, 0 for success.
type Observer interface {
	Called(ctx context.Context, method string, took time.Duration, code int)
}

// Server answers requests with a set of methods. It may be used from many
// goroutines at once.
type Server struct {
	methods  map[string]*target
	config   Config
	messages sync.Pool // of *message
}

// target is a method together with its name, so that the name need not be copied
// out of each request.
type target struct {
	name string
	run  Handler
}

// NewServer returns a server for methods, which it copies.
func NewServer(methods Handlers, config Config) *Server {
	if config.BatchCalls == 0 {
		config.BatchCalls = DefaultBatchCalls
	}
	if config.BatchBytes == 0 {
		config.BatchBytes = DefaultBatchBytes
	}
	if config.AnswerBytes == 0 {
		config.AnswerBytes = DefaultAnswerBytes
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	s := &Server{
		methods: make(map[string]*target, len(methods)),
		config:  config,
	}
	for name, run := range methods {
		s.methods[name] = &target{name: name, run: run}
	}
	return s
}

// Answer runs what request asks for and appends the answer to out: an object, an
// array for a batch, or nothing when it held only notifications. request must not
// change until Answer returns and is not kept after that.
//
// When ctx is done, calls that have not begun are answered `request timed out`;
// those under way are waited for.
func (s *Server) Answer(ctx context.Context, request, out []byte) []byte {
	m, ok := s.messages.Get().(*message)
	if !ok {
		m = new(message)
	}
	defer s.release(m)
	if err := s.parse(ctx, m, request); err != nil {
		return AppendError(out, nil, err)
	}
	ctx = s.within(ctx)
	if m.batch {
		return s.answerBatch(ctx, m, out)
	}
	return s.answerCall(ctx, &m.calls[0], out)
}

// parse reads a request into m, in a turn of the transport's if it is long.
func (s *Server) parse(ctx context.Context, m *message, request []byte) *Error {
	if s.config.Parse == nil || len(request) <= LongRequest {
		return m.parse(request, s.config.BatchCalls)
	}
	return s.parseLong(ctx, m, request)
}

func (s *Server) parseLong(ctx context.Context, m *message, request []byte) (fault *Error) {
	err := s.config.Parse(ctx, func() { fault = m.parse(request, s.config.BatchCalls) })
	if err != nil {
		return s.fault(ctx, err, "a long request was not parsed")
	}
	return fault
}

// release puts m back without holding on to the request it came from.
func (s *Server) release(m *message) {
	clear(m.calls)
	s.messages.Put(m)
}

// answerCall runs one call and appends its answer, or nothing for a notification.
func (s *Server) answerCall(ctx context.Context, c *call, out []byte) []byte {
	if c.fault != "" {
		return AppendError(out, c.id, &Error{Code: CodeInvalidRequest, Message: "invalid request", Data: c.fault})
	}
	mark := len(out)
	var began time.Time
	if s.config.Observer != nil {
		began = time.Now()
	}
	t, fault := s.find(c)
	if fault == nil {
		out, fault = s.run(ctx, t, c.params, appendHead(out, c.id, "result"))
	}
	if fault == nil {
		out = append(out, '}')
	} else {
		out, fault = s.appendFault(out[:mark], c.id, fault)
	}
	if s.config.Observer != nil {
		s.observe(ctx, t, time.Since(began), fault)
	}
	if c.notification() {
		return out[:mark]
	}
	return out
}

// appendFault appends the answer to a call that has failed, and returns what the
// client is told: another error where what came with the first is too large.
func (s *Server) appendFault(out, id []byte, fault *Error) ([]byte, *Error) {
	answer := AppendError(out, id, fault)
	if len(answer)-len(out) <= s.config.AnswerBytes+len(id) {
		return answer, fault
	}
	fault = errTooLarge()
	return AppendError(out, id, fault), fault
}

// find returns the method that c names, or why it cannot be called.
func (s *Server) find(c *call) (*target, *Error) {
	if len(c.method) > maxMethodName {
		return nil, Errorf(CodeInvalidRequest, "method name too long: %d > %d", len(c.method), maxMethodName)
	}
	t := s.methods[string(c.method)]
	if t == nil {
		return nil, Errorf(CodeMethodNotFound, "the method %s does not exist/is not available", c.method)
	}
	return t, nil
}

// run calls a method, whose panics and unexpected errors end here: in the log, and
// as an error that tells the client nothing of them.
func (s *Server) run(ctx context.Context, t *target, params, out []byte) (result []byte, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Log.ErrorContext(ctx, "a method panicked", "method", t.name, "panic", p, "stack", string(debug.Stack()))
			result, fault = out, errInternal()
		}
	}()
	if ctx.Err() != nil {
		return out, errTimeout()
	}
	result, err := t.run(ctx, params, out)
	if err == nil && len(result) > len(out) {
		if len(result)-len(out) > s.config.AnswerBytes {
			return out, errTooLarge()
		}
		return result, nil
	}
	if err == nil {
		s.config.Log.ErrorContext(ctx, "a method returned neither a result nor an error", "method", t.name)
		return out, errInternal()
	}
	return out, s.fault(ctx, err, "a method failed", "method", t.name)
}

// fault returns an error as a client reads it. One that the client must not read is
// logged with the message.
func (s *Server) fault(ctx context.Context, err error, message string, attributes ...any) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errTimeout()
	}
	s.config.Log.ErrorContext(ctx, message, append(attributes, "error", err)...)
	return errInternal()
}

func (s *Server) observe(ctx context.Context, t *target, took time.Duration, fault *Error) {
	name, code := "", 0
	if t != nil {
		name = t.name
	}
	if fault != nil {
		code = fault.Code
	}
	s.config.Observer.Called(ctx, name, took, code)
}

func errInternal() *Error { return &Error{Code: CodeInternal, Message: "internal error"} }
func errTimeout() *Error  { return &Error{Code: CodeTimeout, Message: "request timed out"} }
func errTooLarge() *Error { return &Error{Code: CodeTooLarge, Message: "response too large"} }
