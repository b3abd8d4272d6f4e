package feed

import (
	"context"
	"sync"

	"ashlar/jsonrpc"
)

// maxWaiting is how many results wait for the answer that begins their
// subscription: far more than come before the answer of any but a slow batch.
const maxWaiting = 1024

// errUnsupported is said where a transport cannot send what nobody asked for.
var errUnsupported = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "notifications not supported"}

// Supported says whether the connection of a call can have subscriptions; the
// error is what its client is to read.
func Supported(ctx context.Context) error {
	if _, ok := jsonrpc.NotifierFrom(ctx); !ok {
		return errUnsupported
	}
	return nil
}

// Subscriber is one subscription of a connection. It may be told of from many
// goroutines at once.
type Subscriber struct {
	method string
	tail   []byte // of each message, behind the result

	mu      sync.Mutex
	head    []byte        // guarded by mu: of each message, up to the result
	send    jsonrpc.Send  // guarded by mu: nil until the client knows the subscription's ID
	waiting [][]byte      // guarded by mu: results that came before
	lost    bool          // guarded by mu: there were more than may wait
	over    bool          // guarded by mu: it was ended
	ended   chan struct{} // closed when over
}

// Subscribe begins a subscription on the connection of a call, whose messages are
// notifications of a method. join is called before Subscribe returns and makes the
// subscriber known to whoever is to tell it; leave is called once, after that, when
// the subscription or its connection has ended. Subscribe returns the subscription's
// ID, or an [*jsonrpc.Error], and then neither was called.
func Subscribe(ctx context.Context, method string, join, leave func(*Subscriber)) (id string, err error) {
	notifier, ok := jsonrpc.NotifierFrom(ctx)
	if !ok {
		return "", errUnsupported
	}
	s := &Subscriber{method: method, tail: []byte(jsonrpc.NotificationEnd), ended: make(chan struct{})}
	id, err = notifier.Start(func(ctx context.Context, id string, send jsonrpc.Send) error {
		defer leave(s)
		if err := s.open(id, send); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ended:
			return jsonrpc.ErrLost
		}
	})
	if err != nil {
		return "", err
	}
	join(s)
	return id, nil
}

// open sends what has been told so far, and lets go straight on what comes.
func (s *Subscriber) open(id string, send jsonrpc.Send) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return jsonrpc.ErrSlow
	}
	s.head = jsonrpc.AppendNotification(nil, s.method, id)
	s.send = send
	for _, result := range s.waiting {
		if err := send(s.head, result, s.tail); err != nil {
			return err
		}
	}
	s.waiting = nil
	return nil
}

// Tell sends a result, the JSON of a value. It is not copied, and must not change.
// A client that does not take what it is told is disconnected.
func (s *Subscriber) Tell(result []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
	case s.send != nil:
		// An error means that the connection ends: leave is about to be called.
		_ = s.send(s.head, result, s.tail)
	case len(s.waiting) < maxWaiting:
		s.waiting = append(s.waiting, result)
	default:
		s.waiting, s.lost = nil, true
	}
}

// End ends the subscription and its connection, as what it is to be told is lost. Nothing
// is sent afterwards.
func (s *Subscriber) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.ended)
	}
}
