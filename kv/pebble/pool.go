package pebble

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	lsm "github.com/cockroachdb/pebble/v2"
)

// maxIdle is how many idle iterators a shard of the pool keeps. Each holds on to
// a few blocks of the cache.
const maxIdle = 16

// reader is an iterator over the whole store with a buffer for the keys that it
// seeks. It is used by one goroutine at a time.
type reader struct {
	*lsm.Iterator
	generation uint64
	key        []byte
	until      []byte // end of a descent; see cursor
}

// pool keeps iterators for reuse, because making one costs more than the read
// that it is made for.
//
// An iterator sees the store as it was when it was made. So the pool counts
// generations: each Write begins a new one after it was applied, and a reader of
// an older generation is never handed out again. It is closed, at once if it is
// idle and else when it comes back, so that no idle iterator keeps old tables
// and memtables from being freed.
type pool struct {
	db         *lsm.DB
	generation atomic.Uint64
	shards     []shard
}

type shard struct {
	mu   sync.Mutex
	idle []*reader
	_    [32]byte // keeps neighbours out of each other's cache line
}

func newPool(db *lsm.DB) *pool {
	return &pool{db: db, shards: make([]shard, runtime.GOMAXPROCS(0))}
}

// get returns a reader that sees every Write that has returned.
func (p *pool) get() (*reader, error) {
	generation := p.generation.Load() // before the iterator is made
	r := p.take()
	if r != nil && r.generation == generation {
		return r, nil
	}
	if r != nil {
		if err := r.Close(); err != nil {
			return nil, err
		}
	} else {
		r = new(reader)
	}
	it, err := p.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	r.Iterator, r.generation = it, generation
	return r, nil
}

func (p *pool) take() *reader {
	s := &p.shards[rand.Uint32N(uint32(len(p.shards)))]
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return nil
	}
	r := s.idle[n-1]
	s.idle[n-1] = nil
	s.idle = s.idle[:n-1]
	return r
}

// put takes a reader back. It returns the error that the reader met, if any.
func (p *pool) put(r *reader) error {
	if err := r.Error(); err != nil {
		_ = r.Close() // returns the same error
		return err
	}
	if p.keep(r) {
		return nil
	}
	return r.Close()
}

func (p *pool) keep(r *reader) bool {
	s := &p.shards[rand.Uint32N(uint32(len(p.shards)))]
	s.mu.Lock()
	defer s.mu.Unlock()
	// advance changes the generation before it empties the shard, so a reader
	// that passes here is either current or about to be closed by advance.
	if r.generation != p.generation.Load() || len(s.idle) >= maxIdle {
		return false
	}
	s.idle = append(s.idle, r)
	return true
}

// advance begins a new generation and closes the idle readers of the old one.
func (p *pool) advance() error {
	p.generation.Add(1)
	var first error
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		for j, r := range s.idle {
			if err := r.Close(); err != nil && first == nil {
				first = err
			}
			s.idle[j] = nil
		}
		s.idle = s.idle[:0]
		s.mu.Unlock()
	}
	return first
}
