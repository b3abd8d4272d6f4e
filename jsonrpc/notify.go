package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// ErrSlow means that messages for a client were dropped because it reads too slowly.
// Its connection must end.
var ErrSlow = errors.New("the client reads its messages too slowly")

// ErrLost means that messages for a client were dropped because the server could not
// make them. Its connection must end.
var ErrLost = errors.New("messages for the client were lost")

// Notifier sends notifications to the client of a connection that stays open, for
// subscriptions. A transport that ends with its answer, such as HTTP, has none.
//
// A Notifier may be used from many goroutines at once, and only during the call whose
// context holds it.
type Notifier interface {
	// Start starts a stream and returns its ID, a quantity that is unique within the
	// connection. The stream runs in a goroutine of its own, which starts after the
	// answer to the call was queued, so that the client knows the ID before messages
	// with it arrive. The stream's context is done when the stream is stopped or the
	// connection ends, perhaps before the stream starts. The stream ends when it
	// returns, and the connection waits for that.
	//
	// A method that has started a stream must succeed. If the connection has too many
	// streams, the error is an [*Error].
	Start(stream Stream) (id string, err error)
	// StartSteps starts a stream whose messages each take as much work as the call that
	// starts it. They cost the same credits and have the same limits: each is made in a
	// slot for heavy calls, within the time of a request. The next one is begun when the
	// client was sent the one before.
	StartSteps(step Step) (id string, err error)
	// Stop ends a stream of this connection and returns whether there was one.
	Stop(id string) bool
}

// Stream sends messages for as long as it runs. Send queues one message, a whole
// JSON-RPC notification, and never waits. If the client reads too slowly, it is
// disconnected and Send returns an error. A message may be given in parts, which are
// joined when it is written. Parts are not copied, so that many streams can share
// them, and must not change.
//
// If a stream returns ErrSlow or ErrLost, its connection ends; any other error ends
// the stream only.
type Stream func(ctx context.Context, id string, send Send) error

// Send queues a message of a stream. See [Stream].
type Send func(parts ...[]byte) error

// AppendNotification appends a notification of the stream with an ID, up to its
// result. NotificationEnd follows the result.
func AppendNotification(out []byte, method, id string) []byte {
	out = AppendString(append(out, `{"jsonrpc":"2.0","method":`...), method)
	out = AppendString(append(out, `,"params":{"subscription":`...), id)
	return append(out, `,"result":`...)
}

// NotificationEnd is what follows the result of a notification.
const NotificationEnd = "}}"

// NewID returns a new ID of a subscription or a filter in geth's form: a quantity of 128
// random bits, which cannot be guessed.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	digits := strings.TrimLeft(hex.EncodeToString(b[:]), "0")
	if digits == "" {
		digits = "0"
	}
	return "0x" + digits
}

// Step appends the next message of a stream, a whole JSON-RPC notification, to out. If it
// appends nothing, nothing is sent. It returns io.EOF when there are no more messages;
// the stream then stays until it is stopped. After any other error the connection ends.
//
// A step is repeated if its message did not fit into memory, so it must advance only with
// the next call.
type Step func(ctx context.Context, id string, out []byte) ([]byte, error)

type notifierKey struct{}

// WithNotifier returns a context that holds n for its calls.
func WithNotifier(ctx context.Context, n Notifier) context.Context {
	return context.WithValue(ctx, notifierKey{}, n)
}

// NotifierFrom returns the notifier of a call's connection, or false if the transport
// has none.
func NotifierFrom(ctx context.Context) (Notifier, bool) {
	n, ok := ctx.Value(notifierKey{}).(Notifier)
	return n, ok
}
