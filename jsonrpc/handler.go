package jsonrpc

import "context"

// Handler answers one call. params is the raw JSON of the request's params, of any
// type, or empty when the request has none; it is valid only during the call. Handler
// appends the JSON of its result to out and returns the extended slice. After an error
// everything it appended is discarded. An error that is an [*Error] is sent as it is;
// any other is logged and becomes an internal error. A result of many parts is checked
// against its [Room] while it grows.
//
// A Handler is called from many goroutines at once and must return soon after
// ctx is done.
type Handler func(ctx context.Context, params []byte, out []byte) ([]byte, error)

// Translated returns a handler that passes the errors of h through translate.
func (h Handler) Translated(translate func(error) error) Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		result, err := h(ctx, params, out)
		if err != nil {
			return out, translate(err)
		}
		return result, nil
	}
}

// Handlers maps the names of methods to their handlers. It does not change once it is
// in use.
type Handlers map[string]Handler
