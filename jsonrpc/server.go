package jsonrpc

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"ashlar/typo"
)

// Geth's limits; defaults for a Server whose Config leaves them at zero.
const (
	DefaultBatchCalls = 1000
	DefaultBatchBytes = 25_000_000
	// DefaultAnswerBytes is ours: geth does not limit a single answer.
	DefaultAnswerBytes = 100_000_000
)

// maxMethodName is the maximum length in bytes of a method name that is echoed in an error.
const maxMethodName = 2048

// Config configures a [Server]. The zero value means the defaults.
type Config struct {
	BatchCalls  int          // maximum calls in one batch; 0: DefaultBatchCalls
	BatchBytes  int          // maximum bytes of the answer to a batch; 0: DefaultBatchBytes
	AnswerBytes int          // maximum bytes of one call's result or error; 0: DefaultAnswerBytes
	Observer    Observer     // notified of every call; may be nil
	Log         *slog.Logger // receives panics and errors other than *Error; nil: slog.Default()
	// Parse, if not nil, is called to parse a request of more than LongRequest bytes, so
	// that a transport can bound how many are parsed at once. It must either call parse or
	// return an error.
	Parse func(ctx context.Context, parse func()) error
	// Unknown, if not nil, is called before a call of a method that does not exist is answered.
	// If it returns an error, that is the answer.
	Unknown func(ctx context.Context) error
}

// LongRequest is the size in bytes above which Config.Parse is called. Parsing a request of
// this size takes a fraction of a millisecond.
const LongRequest = 64 << 10

// Observer is notified of every completed call, for metrics. It must be safe for concurrent
// use.
type Observer interface {
	Called(ctx context.Context, c Completed)
}

// Completed describes a completed call.
type Completed struct {
	// Method is the name of an existing method, or empty, so that a client cannot invent
	// metric labels.
	Method string
	Params []byte // as sent; valid only until Called returns
	Took   time.Duration
	Fault  *Error // the error that was sent; nil for success
}

// Code returns the error's code, 0 for success.
func (c *Completed) Code() int {
	if c.Fault == nil {
		return 0
	}
	return c.Fault.Code
}

// Server answers requests with a set of methods. It is safe for concurrent use.
type Server struct {
	methods  map[string]*target
	names    []string // of the methods, sorted
	config   Config
	messages sync.Pool // of *message
}

// target is a method with its name, so that the name need not be copied from each request.
type target struct {
	name string
	run  Handler
}

// NewServer returns a server for methods. It copies the map.
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
	s.names = slices.Sorted(maps.Keys(methods))
	return s
}

// Answer runs a request and appends the answer to out: an object, an array for a batch, or
// nothing if the request held only notifications. request must not change until Answer
// returns; it is not retained.
//
// When ctx is done, calls that have not started are answered `request timed out`; Answer
// waits for those that have.
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

// parse reads a request into m. A long request is parsed through Config.Parse.
func (s *Server) parse(ctx context.Context, m *message, request []byte) *Error {
	if s.config.Parse == nil || len(request) <= LongRequest {
		return m.parse(request, s.config.BatchCalls)
	}
	return s.parseLong(ctx, m, request)
}

func (s *Server) parseLong(ctx context.Context, m *message, request []byte) (fault *Error) {
	err := s.config.Parse(ctx, func() { fault = m.parse(request, s.config.BatchCalls) })
	if err != nil {
		return s.fault(ctx, err, "parse long request failed")
	}
	return fault
}

// Exceeds reports whether the beginning of a request shows that it is a batch of more calls
// than allowed. Answer needs no more of such a request.
func (s *Server) Exceeds(beginning []byte) bool {
	scan := scanner{data: beginning}
	if scan.space() != '[' {
		return false
	}
	m, ok := s.messages.Get().(*message)
	if !ok {
		m = new(message)
	}
	defer s.release(m)
	m.calls, m.size = m.calls[:0], 0
	return m.elements(&scan, s.config.BatchCalls) && m.size > s.config.BatchCalls
}

// release puts m back into the pool without references to its request.
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
	t, fault := s.find(ctx, c)
	if fault == nil {
		out, fault = s.run(ctx, t, c.params, appendHead(out, c.id, "result"))
	}
	if fault == nil {
		out = append(out, '}')
	} else {
		out, fault = s.appendFault(out[:mark], c.id, fault)
	}
	if s.config.Observer != nil {
		s.observe(ctx, t, Completed{Params: c.params, Took: time.Since(began), Fault: fault})
	}
	if c.notification() {
		return out[:mark]
	}
	return out
}

// appendFault appends a failed call's answer. It returns the error that was sent, which is
// another one if fault is too large.
func (s *Server) appendFault(out, id []byte, fault *Error) ([]byte, *Error) {
	answer := AppendError(out, id, fault)
	if len(answer)-len(out) <= s.config.AnswerBytes+len(id) {
		return answer, fault
	}
	fault = errTooLarge()
	return AppendError(out, id, fault), fault
}

// find returns the method that c names, or an error.
func (s *Server) find(ctx context.Context, c *call) (*target, *Error) {
	t := s.methods[string(c.method)]
	if t == nil {
		if s.config.Unknown != nil {
			if err := s.config.Unknown(ctx); err != nil {
				return nil, s.fault(ctx, err, "charge for an unknown method")
			}
		}
		if len(c.method) > maxMethodName {
			return nil, Errorf(CodeInvalidRequest, "method name too long: %d > %d", len(c.method), maxMethodName)
		}
		fault := Errorf(CodeMethodNotFound, "the method %s does not exist/is not available", c.method)
		if meant := typo.Meant(s.names, string(c.method)); meant != "" {
			fault.Data = "did you mean " + meant + "?"
		}
		return nil, fault
	}
	return t, nil
}

// run calls a method. It logs panics and unexpected errors, and answers them with an
// internal error without details.
func (s *Server) run(ctx context.Context, t *target, params, out []byte) (result []byte, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Log.ErrorContext(ctx, "method panicked", "method", t.name, "panic", p, "stack", string(debug.Stack()))
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
		s.config.Log.ErrorContext(ctx, "method returned neither a result nor an error", "method", t.name)
		return out, errInternal()
	}
	return out, s.fault(ctx, err, "method failed", "method", t.name)
}

// fault returns the error to send to a client. An error with internal details is logged
// with the message and replaced by an internal error.
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

func (s *Server) observe(ctx context.Context, t *target, c Completed) {
	if t != nil {
		c.Method = t.name
	}
	s.config.Observer.Called(ctx, c)
}

func errInternal() *Error { return &Error{Code: CodeInternal, Message: "internal error"} }
func errTimeout() *Error  { return &Error{Code: CodeTimeout, Message: "request timed out"} }
func errTooLarge() *Error { return &Error{Code: CodeTooLarge, Message: "response too large"} }
