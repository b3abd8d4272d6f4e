package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// ErrSlow is that a client takes less than it is sent, and must not go on as if it
// had been sent all of it.
var ErrSlow = errors.New("the client does not read what it is sent")

// ErrLost is that the server cannot tell all that a client is to be told, which must not
// go on as if it had been.
var ErrLost = errors.New("what was to be told is lost")

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
	// connection ends, perhaps before it begins, and the connection waits for it to
	// return. Returning ends the stream.
	//
	// A method that has started a stream succeeds. The error, when the connection
	// has as many streams as it may, is an [*Error].
	Start(stream Stream) (id string, err error)
	// Stop ends a stream of this connection, and says whether there was one.
	Stop(id string) bool
}

// Stream sends messages for as long as it runs. Send queues one, a whole JSON-RPC
// notification, behind what was queued before, and never waits: a client that does
// not read what it gets is disconnected, after which Send returns an error. A message
// may be given in parts, which are joined when it is written. Nothing is copied
// before, so what many are sent is held once; it must not change.
//
// A stream that cannot send all that it should returns ErrSlow or ErrLost, and the
// connection ends; any other error ends the stream alone.
type Stream func(ctx context.Context, id string, send Send) error

// Send queues a message of a stream.
type Send func(parts ...[]byte) error

// AppendNotification appends a notification of the stream with an ID, up to its
// result, behind which comes NotificationEnd.
func AppendNotification(out []byte, method, id string) []byte {
	out = AppendString(append(out, `{"jsonrpc":"2.0","method":`...), method)
	out = AppendString(append(out, `,"params":{"subscription":`...), id)
	return append(out, `,"result":`...)
}

// NotificationEnd is what follows the result of a notification.
const NotificationEnd = "}}"

// NewID makes an ID of a subscription or a filter as geth makes them: 128 random
// bits as a quantity, so that nobody guesses another's.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	digits := strings.TrimLeft(hex.EncodeToString(b[:]), "0")
	if digits == "" {
		digits = "0"
	}
	return "0x" + digits
}

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
