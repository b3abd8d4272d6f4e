package feed

import (
	"context"
	"sync"

	"ashlar/jsonrpc"
)

// maxQueued is how many results are queued until the client has the answer that starts
// the subscription: more than a block has logs. Only a slow batch can come near it.
const maxQueued = 16 << 10

// ErrUnsupported is for transports that cannot send notifications.
var ErrUnsupported = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "notifications not supported"}

// Supported returns an error for the client if the connection of a call cannot have
// subscriptions.
func Supported(ctx context.Context) error {
	if _, ok := jsonrpc.NotifierFrom(ctx); !ok {
		return ErrUnsupported
	}
	return nil
}

// Subscriber is one subscription of a connection. It may be used from many goroutines at
// once.
type Subscriber struct {
	method string
	tail   []byte // of each message, after the result

	mu         sync.Mutex
	head       []byte        // guarded by mu: of each message, before the result
	send       jsonrpc.Send  // guarded by mu: nil until the client knows the subscription's ID
	queued     [][]byte      // guarded by mu: results until then
	overflowed bool          // guarded by mu: there were more than maxQueued
	ended      bool          // guarded by mu
	done       chan struct{} // closed when ended
}

// Subscribe starts a subscription on the connection of a call, whose messages are
// notifications of a method. join is called before Subscribe returns and adds the
// subscriber to the set to notify; leave is called once, after that, when the
// subscription or its connection has ended. Subscribe returns the subscription's ID, or
// an [*jsonrpc.Error] without having called either function.
func Subscribe(ctx context.Context, method string, join, leave func(*Subscriber)) (id string, err error) {
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok {
		return "", ErrUnsupported
	}
	s := &Subscriber{method: method, tail: []byte(jsonrpc.NotificationEnd), done: make(chan struct{})}
	id, err = notifier.Start(func(ctx context.Context, id string, send jsonrpc.Send) error {
		defer leave(s)
		if err := s.open(id, send); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.done:
			return jsonrpc.ErrLost
		}
	})
	if err != nil {
		return "", err
	}
	join(s)
	return id, nil
}

// open sends the queued results. Later ones are sent at once.
func (s *Subscriber) open(id string, send jsonrpc.Send) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overflowed {
		return jsonrpc.ErrSlow
	}
	s.head = jsonrpc.AppendNotification(nil, s.method, id)
	s.send = send
	for _, result := range s.queued {
		if err := send(s.head, result, s.tail); err != nil {
			return err
		}
	}
	s.queued = nil
	return nil
}

// Notify sends a result, the JSON of a value. It is not copied, and must not change. A
// client that is too slow to take its notifications is disconnected.
func (s *Subscriber) Notify(result []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case s.send != nil:
		// On an error the connection ends, and leave is about to be called.
		_ = s.send(s.head, result, s.tail)
	case len(s.queued) < maxQueued:
		s.queued = append(s.queued, result)
	default:
		s.queued, s.overflowed = nil, true
	}
}

// End ends the subscription and its connection because notifications were lost. Nothing
// is sent afterwards.
func (s *Subscriber) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}
