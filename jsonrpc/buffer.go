package jsonrpc

import "sync"

// BufferPool keeps byte buffers for use again. Its zero value drops every buffer.
type BufferPool struct {
	// MaxBytes is the greatest capacity that is kept, so that one large answer does
	// not stay in memory for as long as small ones keep its buffer busy.
	MaxBytes int

	pool sync.Pool
}

// Get returns an empty buffer.
func (p *BufferPool) Get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, min(1024, p.MaxBytes))
	return &b
}

// Put takes back a buffer that nobody holds any part of.
func (p *BufferPool) Put(b *[]byte) {
	if cap(*b) > p.MaxBytes {
		return
	}
	*b = (*b)[:0]
	p.pool.Put(b)
}
