package gateway

import (
	"errors"
	"sync"

	"ashlar/jsonrpc"
)

var errClosed = errors.New("the connection is closed")

// outbox is the bounded queue of what is still to be written to one connection.
// What fills it need not wait: who finds it idle is to see that it is drained, by itself
// or in another goroutine. So an idle connection costs nothing here.
type outbox struct {
	maxMessages int
	maxBytes    int // a single message may be larger
	write       func(parts [][]byte) error

	mu      sync.Mutex
	queue   []outgoing // guarded by mu
	bytes   int        // guarded by mu: of queue and of what is being written
	writing bool       // guarded by mu: somebody drains
	closed  bool       // guarded by mu
}

// outgoing is a message and what is to be done when it needs its bytes no more.
type outgoing struct {
	parts [][]byte
	done  func() // may be nil
}

// size is how many bytes there are in all parts.
func (m outgoing) size() (n int) {
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

// put queues a message, or returns jsonrpc.ErrSlow or errClosed, and then done is not
// called. Where first is true nobody drains yet, and the caller must see that somebody does.
func (o *outbox) put(m outgoing) (first bool, err error) {
	size := m.size()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return false, errClosed
	case len(o.queue) >= o.maxMessages, o.bytes > 0 && o.bytes+size > o.maxBytes:
		return false, jsonrpc.ErrSlow
	}
	o.queue = append(o.queue, m)
	o.bytes += size
	first = !o.writing
	o.writing = true
	return first, nil
}

// drain writes what is queued until nothing is left. It is called once for each put
// that was the first.
func (o *outbox) drain() {
	for {
		o.mu.Lock()
		batch := o.queue
		o.queue = nil
		if len(batch) == 0 {
			o.writing = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		for i, m := range batch {
			err := o.write(m.parts)
			o.finish(m)
			if err != nil {
				o.close()
				for _, m := range batch[i+1:] {
					o.finish(m)
				}
				break
			}
		}
	}
}

func (o *outbox) finish(m outgoing) {
	o.mu.Lock()
	o.bytes -= m.size()
	o.mu.Unlock()
	if m.done != nil {
		m.done()
	}
}

// close drops what is queued and takes nothing more.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	dropped := o.queue
	o.queue = nil
	o.mu.Unlock()
	for _, m := range dropped {
		o.finish(m)
	}
}
