package jsonrpc

import (
	"context"
	"errors"
	"math"
)

// ServerKey is the context key of the *Server that answers a call. Answer adds the
// value if it is missing, which allocates; transports with a context type of their own
// can provide it without.
type ServerKey struct{}

// within returns ctx with s as the value of ServerKey.
func (s *Server) within(ctx context.Context) context.Context {
	if ctx.Value(ServerKey{}) == s {
		return ctx
	}
	return context.WithValue(ctx, ServerKey{}, s)
}

// HolderKey is the context key of the [Holder] that counts the bytes of a call's answer.
// A transport that bounds them sets it.
type HolderKey struct{}

// Holder counts what a buffer of answers holds.
type Holder interface {
	// Hold records the length of the buffer. It returns the error that ends the call if
	// that exceeds the limit.
	Hold(length int) error
	// Reserve records that the buffer is about to get a capacity that may never be used. It
	// returns false, and records nothing, if that exceeds the limit.
	Reserve(capacity int) bool
	// Drop records that an answer is not sent, because it does not fit beside the others of a
	// batch. The client does not learn what it names, such as a subscription.
	Drop(answer []byte)
}

// Room is the limit of a call's result. The server rejects a result over the limit once
// it is complete. A method whose result has many parts also checks after each part, so
// that it never holds more than the limit and one part.
type Room struct {
	end    int    // what the length of the buffer must not exceed
	holder Holder // also checked; may be nil
	shared bool   // end is nearer because of the other answers of a batch
}

// batchKey is the context key of the length that the buffer of a batch's answers may have at the
// end of a result.
type batchKey struct{}

// RoomFor returns the room of a result that starts at the end of out. It must be called
// before anything is appended. Without a server in ctx there is no limit.
func RoomFor(ctx context.Context, out []byte) Room {
	room := Room{end: math.MaxInt}
	if s, ok := ctx.Value(ServerKey{}).(*Server); ok {
		room.end = len(out) + s.config.AnswerBytes
	}
	room.holder, _ = ctx.Value(HolderKey{}).(Holder)
	return room
}

// RoomLeft is RoomFor for a call that returns something only once, such as a poll of a filter. Its
// result must fit beside the earlier answers of a batch, or it would be dropped.
func RoomLeft(ctx context.Context, out []byte) Room {
	room := RoomFor(ctx, out)
	if end, ok := ctx.Value(batchKey{}).(int); ok && end < room.end {
		room.end, room.shared = end, true
	}
	return room
}

// Never reports whether an error of Check means that a result fits into no answer, and not only
// that there is no memory now, or no place beside the other answers of a batch.
func (r Room) Never(err error) bool {
	var e *Error
	return !r.shared && errors.As(err, &e) && e.Code == CodeTooLarge
}

// Check returns the error that ends the call if the buffer with the result has grown to a
// length over the limit.
func (r Room) Check(length int) error {
	if length > r.end {
		return errTooLarge()
	}
	if r.holder != nil {
		return r.holder.Hold(length)
	}
	return nil
}
