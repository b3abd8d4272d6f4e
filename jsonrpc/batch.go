package jsonrpc

import (
	"context"
	"slices"
)

// answerBatch appends the array of answers to a batch, or what is wrong with it as
// a whole. A batch of notifications has no answer at all.
func (s *Server) answerBatch(ctx context.Context, m *message, out []byte) []byte {
	switch {
	case m.size == 0:
		return AppendError(out, nil, &Error{Code: CodeInvalidRequest, Message: "empty batch"})
	case m.size > len(m.calls):
		return appendBatchTooLarge(out, m.calls)
	}
	a := answers{out: append(out, '['), from: len(out), limit: s.config.BatchBytes}
	for i := range m.calls {
		c := &m.calls[i]
		if a.full {
			a.refuse(c)
		} else {
			a.end(c, s.answerCall(ctx, c, a.begin()))
		}
	}
	return a.close()
}

// appendBatchTooLarge appends an array with one error, as geth does: clients look
// for the answers to their calls in an array, by id, so the error stands for the
// first call that has one.
func appendBatchTooLarge(out []byte, calls []call) []byte {
	var id []byte
	for i := range calls {
		if calls[i].fault == "" && calls[i].id != nil {
			id = calls[i].id
			break
		}
	}
	out = AppendError(append(out, '['), id, &Error{Code: CodeInvalidRequest, Message: "batch too large"})
	return append(out, ']')
}

// answers is the array of a batch's answers while it grows, call after call.
type answers struct {
	out   []byte
	from  int  // where the array begins in out
	mark  int  // where the answer being added begins, its comma included
	limit int  // most bytes of the array
	full  bool // one answer did not fit: that and all after it are refused
}

// begin returns out, ready for the next answer to be appended. Where that may not
// fit, by the length of the one before, out is made twice as large: by itself it
// would grow in small steps, each with a copy of all that is there.
func (a *answers) begin() []byte {
	if cap(a.out)-len(a.out) < len(a.out)-a.mark {
		a.out = slices.Grow(a.out, min(len(a.out), a.limit))
	}
	a.mark = len(a.out)
	if a.mark > a.from+1 {
		return append(a.out, ',')
	}
	return a.out
}

// end takes out with the answer to c appended, or nothing for a notification.
func (a *answers) end(c *call, out []byte) {
	comma := 0
	if a.mark > a.from+1 {
		comma = 1
	}
	switch {
	case len(out) == a.mark+comma:
		a.out = out[:a.mark]
	case len(out)+1-a.from > a.limit:
		a.full = true
		a.out = out[:a.mark]
		a.refuse(c)
	default:
		a.out = out
	}
}

// refuse answers c, if it wants an answer, with what is said of all that does not
// fit. These answers themselves may pass the limit, by less than the request's size.
func (a *answers) refuse(c *call) {
	if !c.notification() {
		a.out = AppendError(a.begin(), c.id, errTooLarge())
	}
}

func (a *answers) close() []byte {
	if len(a.out) == a.from+1 {
		return a.out[:a.from] // notifications only
	}
	return append(a.out, ']')
}
