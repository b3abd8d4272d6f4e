package jsonrpc

import "sync"

// BufferPool keeps byte buffers for reuse. Its zero value drops every buffer.
//
// Large buffers are kept apart. Otherwise small answers would keep the buffer of one
// large answer in memory.
type BufferPool struct {
	// MaxBytes is the greatest capacity of a small buffer.
	MaxBytes int
	// MaxLargeBytes bounds the large buffers that are kept, all together.
	MaxLargeBytes int

	small sync.Pool

	mu         sync.Mutex
	large      []*[]byte // guarded by mu
	largeBytes int       // capacity of large, all together; guarded by mu
}

// Get returns an empty buffer.
func (p *BufferPool) Get() *[]byte {
	if b, ok := p.small.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, min(1024, p.MaxBytes))
	return &b
}

// GetLarge returns an empty buffer, a large one if the pool has any. Growing a large
// buffer, by copies, costs more than filling it.
func (p *BufferPool) GetLarge() *[]byte {
	p.mu.Lock()
	last := len(p.large) - 1
	if last < 0 {
		p.mu.Unlock()
		return p.Get()
	}
	b := p.large[last]
	p.large[last] = nil
	p.large = p.large[:last]
	p.largeBytes -= cap(*b)
	p.mu.Unlock()
	return b
}

// Put returns a buffer to the pool. No part of it may be in use. A buffer that has grown
// large is dropped.
func (p *BufferPool) Put(b *[]byte) {
	if cap(*b) > p.MaxBytes {
		return
	}
	*b = (*b)[:0]
	p.small.Put(b)
}

// PutLarge is Put for buffers from GetLarge. It keeps large buffers too.
func (p *BufferPool) PutLarge(b *[]byte) {
	size := cap(*b)
	if size <= p.MaxBytes {
		p.Put(b)
		return
	}
	*b = (*b)[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.largeBytes+size <= p.MaxLargeBytes {
		p.large = append(p.large, b)
		p.largeBytes += size
	}
}
