package jsonrpc

import "context"

// Notifier is what a connection that stays open can do beyond answering: send its
// client messages that nobody asked for. Subscriptions are made of it. A transport
// that ends with its answer, as HTTP does, has none.
//
// It may be used from many goroutines at once, and only during the call that it
// was handed to.
type Notifier interface {
	// Start begins a stream and returns its ID, a quantity that no other stream of
	// the connection has. The stream runs in a goroutine of its own, which begins
	// once the answer to the call has been queued, so that the client knows the ID
	// before it reads of it; its context is done when the stream is stopped or the
	// connection ends, and the connection waits for it to return. Returning ends
	// the stream.
	//
	// A method that has started a stream succeeds. The error, when the connection
	// has as many streams as it may, is an [*Error].
	Start(stream Stream) (id string, err error)
	// Stop ends a stream of this connection, and says whether there was one.
	Stop(id string) bool
}

// Stream sends messages for as long as it runs. Send queues one, a whole JSON-RPC
// notification, behind what was queued before, and never waits: a client that does
// not read what it gets is disconnected, after which Send returns an error. The
// message is not copied, so one message may be sent to many; it must not change.
type Stream func(ctx context.Context, id string, send func(message []byte) error)

type notifierKey struct{}

// WithNotifier returns a context whose calls may use n.
func WithNotifier(ctx context.Context, n Notifier) context.Context {
	return context.WithValue(ctx, notifierKey{}, n)
}

// NotifierFrom returns the notifier of the connection that a call came by, and
// false where the transport has none.
func NotifierFrom(ctx context.Context) (Notifier, bool) {
	n, ok := ctx.Value(notifierKey{}).(Notifier)
	return n, ok
}
