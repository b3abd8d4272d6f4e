package gateway

import (
	"errors"
	"sync"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

var errClosed = errors.New("the connection is closed")

// outbox is the bounded queue of messages to be written to one connection. Adding one never
// waits. A caller that finds the outbox idle must drain it, in this goroutine or another,
// so an idle connection has no goroutine for it.
type outbox struct {
	maxMessages int
	maxBytes    int // a single message may exceed it
	write       func(parts [][]byte) error
	memory      *limit.Budget // charged for messages with held bytes
	holding     *limit.Holding

	mu      sync.Mutex
	queue   []outgoing // guarded by mu
	bytes   int        // guarded by mu: of queue and of the message being written
	writing bool       // guarded by mu: a goroutine is draining it
	closed  bool       // guarded by mu
}

// outgoing is a message; done is called once its bytes are no longer needed.
type outgoing struct {
	parts [][]byte
	done  func() // may be nil
	held  int64  // bytes taken from the outbox's memory
}

// size returns the number of bytes in all parts.
func (m outgoing) size() (n int) {
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

// put queues a message, or returns jsonrpc.ErrSlow or errClosed; after an error, done is
// not called and held is not released. If first is true, the caller must ensure that drain
// is called.
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

// drain writes messages until the queue is empty. It must be called once for each put that
// returned first.
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
	if m.held > 0 {
		o.memory.Give(o.holding, m.held)
	}
	if m.done != nil {
		m.done()
	}
}

// close drops all messages and rejects new ones.
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
