package jsonrpc

import "context"

// CallerKey is the key of the value by which a call's context says who makes it: a
// string, the same for all calls of one caller and for nobody else's. A transport
// that knows its callers sets it.
type CallerKey struct{}

// CallerFrom returns who makes a call; nothing where the transport does not say.
func CallerFrom(ctx context.Context) string {
	caller, _ := ctx.Value(CallerKey{}).(string)
	return caller
}
