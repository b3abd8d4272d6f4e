package gateway

import (
	"errors"
	"sync"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

var errClosed = errors.New("the connection is closed")

// freeBytes is the memory of unsent answers of a connection that is not counted, as little as that of
// the connection itself. A client that reads has fewer, and loses none when there is no memory.
const freeBytes = 32 << 10

// outbox is the bounded queue of messages to be written to one connection. Adding one never
// waits: messages of streams that do not fit are refused, and answers are bounded because the
// connection's reader waits before it takes another request. A caller that finds the outbox idle
// must drain it, in this goroutine or another, so an idle connection has no goroutine for it.
type outbox struct {
	maxMessages int
	maxBytes    int // of answers, and of messages of streams; a single message may exceed it
	write       func(parts [][]byte) error
	memory      *limit.Budget // charged for messages with held bytes
	holding     *limit.Holding

	mu      sync.Mutex
	queue   []outgoing    // guarded by mu
	bytes   int           // guarded by mu: of messages of streams, queued and being written
	answers int           // guarded by mu: bytes of answers, likewise
	free    int           // guarded by mu: bytes of answers that are not counted in memory
	writing bool          // guarded by mu: a goroutine is draining it
	closed  bool          // guarded by mu
	sent    chan struct{} // has an element after a message was sent or dropped
}

// outgoing is a message; done is called once its bytes are no longer needed.
type outgoing struct {
	parts [][]byte
	done  func()       // may be nil
	held  int64        // bytes taken from the outbox's memory; 0 for an answer, which has its own
	lease *limit.Lease // memory of an answer; nil for others
	keeps int          // bytes of an answer
	free  int          // of keeps, if they are not in the lease
}

// size returns the number of bytes in all parts.
func (m outgoing) size() (n int) {
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

// put queues a message, or returns jsonrpc.ErrSlow, limit.ErrMemory or errClosed; after an error,
// done is not called and held is not released. If first is true, the caller must ensure that drain
// is called.
func (o *outbox) put(m outgoing) (first bool, err error) {
	size := m.size()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return false, errClosed
	case len(o.queue) >= o.maxMessages, m.held > 0 && o.bytes > 0 && o.bytes+size > o.maxBytes:
		return false, jsonrpc.ErrSlow
	case m.lease != nil && !o.keep(&m):
		return false, limit.ErrMemory
	}
	o.queue = append(o.queue, m)
	o.count(m, size)
	first = !o.writing
	o.writing = true
	return first, nil
}

// keep counts the memory of an answer, apart from the first freeBytes of all. It returns false if
// there is none. o.mu must be held.
func (o *outbox) keep(m *outgoing) bool {
	if lacks := m.lease.Lacks(m.keeps); o.free+lacks <= freeBytes {
		m.free = lacks
		o.free += lacks
		return true
	}
	return m.lease.Keep(m.keeps)
}

// count adds to the bytes that are not sent. o.mu must be held.
func (o *outbox) count(m outgoing, bytes int) {
	if m.held > 0 {
		o.bytes += bytes
	} else {
		o.answers += bytes
	}
}

// wait returns once fewer bytes of answers than maxBytes are unsent, or end is closed. One
// goroutine may call it.
func (o *outbox) wait(end <-chan struct{}) {
	for {
		o.mu.Lock()
		full := o.answers >= o.maxBytes
		o.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-o.sent:
		case <-end:
			return
		}
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
	o.free -= m.free
	o.mu.Unlock()
	select {
	case o.sent <- struct{}{}:
	default:
	}
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
