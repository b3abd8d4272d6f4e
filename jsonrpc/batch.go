package jsonrpc

import (
	"context"
	"fmt"
	"slices"
)

// answerBatch appends the array of answers to a batch, or one error for the whole batch. A
// batch of notifications has no answer.
func (s *Server) answerBatch(ctx context.Context, m *message, out []byte) []byte {
	switch {
	case m.size == 0:
		return AppendError(out, nil, &Error{Code: CodeInvalidRequest, Message: "empty batch"})
	case m.size > len(m.calls):
		return appendBatchTooLarge(out, m.calls, s.config.BatchCalls)
	}
	a := answers{out: append(out, '['), from: len(out), limit: s.config.BatchBytes, left: len(m.calls)}
	a.holder, _ = ctx.Value(HolderKey{}).(Holder)
	ctx = context.WithValue(ctx, batchKey{}, a.from+a.limit-len("}]"))
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

// appendBatchTooLarge appends an array with one error, as geth does. Clients look up
// answers by id in an array, so the error carries the id of the first call that has one.
func appendBatchTooLarge(out []byte, calls []call, limit int) []byte {
	var id []byte
	for i := range calls {
		if calls[i].fault == "" && calls[i].id != nil {
			id = calls[i].id
			break
		}
	}
	out = AppendError(append(out, '['), id, &Error{Code: CodeInvalidRequest, Message: "batch too large", Data: fmt.Sprintf("expected at most %d calls", limit)})
	return append(out, ']')
}

// answers is the growing array of a batch's answers.
type answers struct {
	out   []byte
	from  int  // offset of the array in out
	mark  int  // offset of the answer being added, including its comma
	limit int  // maximum bytes of the array
	full  bool // an answer did not fit; it and all later calls are refused

	begun, left int    // answers that were begun, and calls without an answer
	holder      Holder // may be nil
}

// begin returns out, ready for the next answer to be appended. If the next answer may not
// fit, judging by the length of the previous one, out is grown: append would grow it in
// smaller steps, each copying the whole array.
func (a *answers) begin() []byte {
	if cap(a.out)-len(a.out) < len(a.out)-a.mark {
		a.out = slices.Grow(a.out, a.growth())
	}
	if !a.full {
		a.begun++
		a.left--
	}
	a.mark = len(a.out)
	if a.mark > a.from+1 {
		return append(a.out, ',')
	}
	return a.out
}

const (
	// enoughAnswers is how many answers show how long the others are going to be.
	enoughAnswers = 8
	// refusalBytes is more than the length of most refusals.
	refusalBytes = 256
)

// growth returns by how many bytes out grows: to twice its length, or, once there are enough
// answers, to the length that all will have if they go on like that, plus an eighth. For 100
// answers of 48 KiB that is one buffer of 5 MiB instead of 1, 2, 4 and 8 MiB. More than twice
// the length is taken only if the holder has memory for it.
func (a *answers) growth() int {
	length, next := len(a.out)-a.from, len(a.out)-a.mark // the next answer may be as long as the last one
	if a.full {
		return max(next, refusalBytes*(a.left+1))
	}
	double := min(len(a.out), a.limit)
	if a.begun < enoughAnswers {
		return max(double, next)
	}
	rest := length / a.begun * a.left
	rest = max(next, min(rest+rest/8, a.limit-length))
	if rest > double && a.holder != nil && !a.holder.Reserve(len(a.out)+rest) {
		return max(double, next)
	}
	return rest
}

// end accepts out with the answer to c appended; a notification's answer is dropped.
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
		if a.holder != nil {
			a.holder.Drop(out[a.mark:])
		}
		a.out = out[:a.mark]
		a.refuse(c)
	default:
		a.out = out
	}
}

// refuse answers c, unless it is a notification, with the error for calls whose answers do
// not fit. These errors may exceed the limit by less than the request's size.
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
