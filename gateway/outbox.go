package gateway

import (
	"errors"
	"sync"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

var errClosed = errors.New("the connection is closed")

// outbox is the bounded queue of messages to be written to one connection. Adding one never
// waits: messages of streams that do not fit are refused, and answers are bounded because the
// connection's reader waits before it takes another request. A caller that finds the outbox idle
// must drain it, in this goroutine or another, so an idle connection has no goroutine for it.
type outbox struct {
	maxMessages int
	maxBytes    int // of answers, and of messages of streams; a single message may exceed it
	write       func(parts [][]byte) error
	memory      *limit.Budget // charged for messages of streams
	holding     *limit.Holding

	mu      sync.Mutex
	queue   []outgoing    // guarded by mu
	bytes   int           // guarded by mu: of messages of streams, queued and being written
	answers int           // guarded by mu: bytes of answers, likewise
	writing bool          // guarded by mu: a goroutine is draining it
	closed  bool          // guarded by mu
	changed chan struct{} // has an element after notify
}

// outgoing is a message; done is called once its bytes are no longer needed.
type outgoing struct {
	parts [][]byte
	done  func() // may be nil
	taken int64  // bytes of the outbox's memory; 0 for an answer, which its exchange's lease counts
}

// size returns the number of bytes in all parts.
func (m outgoing) size() (n int) {
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

// put queues a message, or returns jsonrpc.ErrSlow or errClosed; after an error, done is not called
// and taken is not given back. If first is true, the caller must ensure that drain is called.
func (o *outbox) put(m outgoing) (first bool, err error) {
	size := m.size()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return false, errClosed
	case len(o.queue) >= o.maxMessages, m.taken > 0 && o.bytes > 0 && o.bytes+size > o.maxBytes:
		return false, jsonrpc.ErrSlow
	}
	o.queue = append(o.queue, m)
	o.count(m, size)
	first = !o.writing
	o.writing = true
	return first, nil
}

// count adds to the bytes that are not sent. o.mu must be held.
func (o *outbox) count(m outgoing, bytes int) {
	if m.taken > 0 {
		o.bytes += bytes
	} else {
		o.answers += bytes
	}
}

// wait returns once fewer bytes of answers than maxBytes are unsent and ready returns true, or end is
// closed. It asks again after each notify. One goroutine may call it.
func (o *outbox) wait(end <-chan struct{}, ready func() bool) {
	for {
		o.mu.Lock()
		full := o.answers >= o.maxBytes
		o.mu.Unlock()
		if !full && ready() {
			return
		}
		select {
		case <-o.changed:
		case <-end:
			return
		}
	}
}

// notify wakes wait. It is called after a message was sent, dropped or done.
func (o *outbox) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
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
	o.count(m, -m.size())
	o.mu.Unlock()
	if m.taken > 0 {
		o.memory.Give(o.holding, m.taken)
	}
	if m.done != nil {
		m.done()
	}
	o.notify()
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
