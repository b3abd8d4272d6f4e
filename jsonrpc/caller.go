package jsonrpc

import "context"

// CallerKey is the context key of a call's caller: a string that all calls of one caller
// share and no others. A transport that knows its callers sets it.
type CallerKey struct{}

// CallerFrom returns the caller of a call, or "" if the transport does not know it.
func CallerFrom(ctx context.Context) string {
	caller, _ := ctx.Value(CallerKey{}).(string)
	return caller
}
