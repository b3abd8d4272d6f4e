package jsonrpc

import "context"

// Handler answers one call. params is the raw JSON of the request's params, of any type, or
// empty if the request has none; it is valid only during the call. Handler appends the JSON
// of its result to out and returns the extended slice. After an error, everything it
// appended is discarded. An [*Error] is sent to the client unchanged; any other error is
// logged and sent as an internal error. A method whose result has many parts checks its
// [Room] while the result grows.
//
// A Handler must be safe for concurrent use, and must return soon after ctx is done.
type Handler func(ctx context.Context, params []byte, out []byte) ([]byte, error)

// Translated returns a handler that passes h's errors through translate.
func (h Handler) Translated(translate func(error) error) Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		result, err := h(ctx, params, out)
		if err != nil {
			return out, translate(err)
		}
		return result, nil
	}
}

// After returns a handler that calls ready first, and returns its error.
func (h Handler) After(ready func(context.Context) error) Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		if err := ready(ctx); err != nil {
			return out, err
		}
		return h(ctx, params, out)
	}
}

// Handlers maps method names to handlers. It must not change once in use.
type Handlers map[string]Handler
