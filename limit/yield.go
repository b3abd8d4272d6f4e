package limit

import "context"

// YielderKey is the context key of the [Yielder] of a request.
type YielderKey struct{}

// Yielder is a request whose call may keep processors busy, and waits now and then.
type Yielder interface {
	// Yield is the function [Yield] for the call.
	Yield(ctx context.Context, wait func() error) error
}

// Yield runs wait, during which the call that ctx is for only waits, such as for nodes. Meanwhile others
// may have the slot in which it keeps processors busy. The call waits for such a slot again before Yield
// returns, and must not go on without: the error is wait's, or says why there is no slot.
//
// Only the goroutine that answers the call may call it, and only while nothing else runs for the call
// and while it holds nothing that others with a slot may wait for, such as a lock. See [Unyielding].
func Yield(ctx context.Context, wait func() error) error {
	if y, ok := ctx.Value(YielderKey{}).(Yielder); ok {
		return y.Yield(ctx, wait)
	}
	return wait()
}

// Unyielding returns ctx for what a call does while it holds something that others may wait for: Yield keeps
// the slot.
func Unyielding(ctx context.Context) context.Context {
	return context.WithValue(ctx, YielderKey{}, nil)
}
