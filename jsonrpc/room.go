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

// Room is how far the result of a call may grow. A result that is over the limit is
// refused in any case, but only once it is all there: a method whose result has many
// parts checks after each of them, so that no more is held than the limit and a part.
type Room struct{ end int } // what the length of the buffer must not exceed

// RoomFor returns the room of a result that begins at the end of out, to be asked for
// before anything is appended. Where no server answers there is no limit.
func RoomFor(ctx context.Context, out []byte) Room {
	s, ok := ctx.Value(ServerKey{}).(*Server)
	if !ok {
		return Room{math.MaxInt}
	}
	return Room{len(out) + s.config.AnswerBytes}
}

// Check returns the error that ends the call if a buffer of that length, in which the
// result is being made, holds more than fits.
func (r Room) Check(length int) error {
	if length > r.end {
		return errTooLarge()
	}
	return nil
}
