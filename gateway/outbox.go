package gateway

import (
	"errors"
	"sync"

	"ashlar/jsonrpc"
)

var errClosed = errors.New("the connection is closed")

// outbox is the bounded queue of what is still to be written to one connection.
// What fills it never waits. It has a goroutine only while there is something to
// write, so that an idle connection costs nothing here.
type outbox struct {
	maxMessages int
	maxBytes    int // a single message may be larger
	run         func(func())
	write       func(parts [][]byte) error

	mu      sync.Mutex
	queue   []outgoing // guarded by mu
	bytes   int        // guarded by mu: of queue and of what is being written
	writing bool       // guarded by mu: a goroutine empties queue
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

// put queues a message, or returns jsonrpc.ErrSlow or errClosed, and then done is not called.
func (o *outbox) put(m outgoing) error {
	size := m.size()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return errClosed
	case len(o.queue) >= o.maxMessages, o.bytes > 0 && o.bytes+size > o.maxBytes:
		return jsonrpc.ErrSlow
	}
	o.queue = append(o.queue, m)
	o.bytes += size
	if !o.writing {
		o.writing = true
		o.run(o.drain)
	}
	return nil
}

// drain writes what is queued until nothing is left.
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
