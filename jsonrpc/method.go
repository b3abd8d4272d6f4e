package jsonrpc

import "context"

// Method answers one call. params is the raw JSON of the request's params, whatever
// value that is, or empty when there were none; it is valid only during the call. Method appends the JSON of its result to out and returns the extended
// slice. On error whatever it appended is discarded; an error that is an [*Error]
// is sent as it is, any other becomes an internal error whose text stays in the log.
// A result of many parts is checked against its [Room] while it is made.
//
// A Method is called from many goroutines at once and must return soon after
// ctx is done.
type Method func(ctx context.Context, params []byte, out []byte) ([]byte, error)

// Translated is the method with errors in other words.
func (m Method) Translated(translate func(error) error) Method {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		result, err := m(ctx, params, out)
		if err != nil {
			return out, translate(err)
		}
		return result, nil
	}
}

// Methods maps a method's name to what answers it. It is not changed once it is in use.
type Methods map[string]Method
