package jsonrpc

import (
	"context"
	"math"
)

// ServerKey is the key of the value by which a call's context says which *Server
// answers it. Answer adds it to contexts that do not have it, which allocates; a
// transport that makes contexts of its own spares that.
type ServerKey struct{}

// within returns ctx as a context that says that s answers.
func (s *Server) within(ctx context.Context) context.Context {
	if ctx.Value(ServerKey{}) == s {
		return ctx
	}
	return context.WithValue(ctx, ServerKey{}, s)
}

// HolderKey is the key of the value by which a call's context says who counts what the
// buffer holds to which answers are appended: a [Holder]. A transport that bounds that
// sets it.
type HolderKey struct{}

// Holder counts what a buffer of answers holds.
type Holder interface {
	// Hold is told how long the buffer has become, and returns the error that ends the
	// call where that is more than may be held.
	Hold(length int) error
}

// Room is how far the result of a call may grow. A result that is over the limit is
// refused in any case, but only once it is all there: a method whose result has many
// parts checks after each of them, so that no more is held than the limit and a part.
type Room struct {
	end    int    // what the length of the buffer must not exceed
	holder Holder // who else is asked; may be nil
}

// RoomFor returns the room of a result that begins at the end of out, to be asked for
// before anything is appended. Where no server answers there is no limit.
func RoomFor(ctx context.Context, out []byte) Room {
	room := Room{end: math.MaxInt}
	if s, ok := ctx.Value(ServerKey{}).(*Server); ok {
		room.end = len(out) + s.config.AnswerBytes
	}
	room.holder, _ = ctx.Value(HolderKey{}).(Holder)
	return room
}

// Check returns the error that ends the call if a buffer of that length, in which the
// result is being made, holds more than fits.
func (r Room) Check(length int) error {
	if length > r.end {
		return errTooLarge()
	}
	if r.holder != nil {
		return r.holder.Hold(length)
	}
	return nil
}
