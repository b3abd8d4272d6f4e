package pebble

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

const (
	maxShards = 8
	// maxIdle is the maximum number of idle readers per table and shard. Each pins a few
	// blocks of the cache.
	maxIdle = 8
)

// reader is an iterator over the whole store with a buffer for the keys that it
// seeks. It is used by one goroutine at a time.
type reader struct {
	*lsm.Iterator
	generation uint64
	table      byte // the only one whose rows it reads
	key        []byte
	inPrefix   bool // the iterator was moved by seek last, and perhaps by Next
}

// pool reuses readers, because creating one costs more than the read it is created for. A
// reader always reads the same table: it keeps that table's files, indexes and blocks open,
// and most requests need rows of several tables, which are far apart.
//
// A reader sees the store as of its creation, so the pool counts generations. After each
// Write is applied, a new iterator starts a new generation. All readers of a generation are
// clones of its iterator and see the same data, and readers of older generations are never
// handed out again. So a Write becomes visible to all readers at one moment: after a
// pointer was read, every new reader sees the rows written with it.
//
// When a generation starts, idle readers of the previous one are closed; readers in use are
// closed when they are returned. So none keeps old tables and memtables alive.
type pool struct {
	db         *lsm.DB
	guard      *guard
	generation atomic.Uint64

	mu    sync.RWMutex
	model *lsm.Iterator // what the current generation's readers are clones of; guarded by mu

	shards []shard
}

type shard struct {
	mu     sync.Mutex
	stacks [1 << 8]stack // by table
}

// stack is what a shard has of one table's readers.
type stack struct {
	idle    atomic.Int32 // len(readers), to pass empty shards by
	readers []*reader    // guarded by the shard's mu
}

func newPool(db *lsm.DB, g *guard) (*pool, error) {
	p := &pool{db: db, guard: g, shards: make([]shard, min(runtime.GOMAXPROCS(0), maxShards))}
	var err error
	if p.model, err = newIterator(db); err != nil {
		return nil, err
	}
	return p, nil
}

// newIterator makes an iterator over everything, the model of a generation.
func newIterator(db *lsm.DB) (*lsm.Iterator, error) { return db.NewIter(nil) }

// optionsFor are those of the iterators that read a table. They ask the filters of
// the lowest level too, unlike Pebble by default: that is a tenth more work for a
// partition which is there, and a third of it for one which is not, which is
// common: empty slots, new accounts, terms without logs. Only where it is not
// common they do without. A file full of transaction hashes has a filter of 6 MB. That is more
// than a shard of a cache of 128 MiB holds on eight processors, and would be read for each look-up.
func optionsFor(t *kv.Table) *lsm.IterOptions {
	return &lsm.IterOptions{UseL6Filters: !t.Expected}
}

// get returns a reader of a table that sees every Write that has returned.
func (p *pool) get(t *kv.Table) (*reader, error) {
	r := p.take(t.ID)
	if r != nil && r.generation == p.generation.Load() {
		return r, nil
	}
	if r == nil {
		r = &reader{table: t.ID}
	} else if err := r.Close(); err != nil {
		return nil, err
	}
	it, generation, err := p.open(t)
	if err != nil {
		return nil, err
	}
	r.Iterator, r.generation, r.inPrefix = it, generation, false
	return r, nil
}

// open makes an iterator of the current generation that reads a table. The caller
// closes it.
func (p *pool) open(t *kv.Table) (*lsm.Iterator, uint64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	it, err := p.model.Clone(lsm.CloneOptions{IterOptions: optionsFor(t)})
	if err != nil {
		return nil, 0, p.guard.unread(fmt.Errorf("kv/pebble: %w", err))
	}
	return it, p.generation.Load(), nil
}

// use calls do with a reader of a table. An error of the reader takes precedence over that
// of do.
func (p *pool) use(t *kv.Table, do func(*reader) error) (err error) {
	r, err := p.get(t)
	if err != nil {
		return err
	}
	defer func() {
		if perr := p.put(r); perr != nil {
			err = perr
		}
	}()
	return do(r)
}

// take returns an idle reader of a table or nil.
func (p *pool) take(table byte) *reader {
	first := rand.IntN(len(p.shards))
	for i := range p.shards {
		s := &p.shards[(first+i)%len(p.shards)]
		if s.stacks[table].idle.Load() == 0 {
			continue
		}
		if r := s.pop(table); r != nil {
			return r
		}
	}
	return nil
}

func (s *shard) pop(table byte) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.stacks[table]
	n := len(k.readers)
	if n == 0 {
		return nil
	}
	r := k.readers[n-1]
	k.readers[n-1] = nil
	k.readers = k.readers[:n-1]
	k.idle.Store(int32(n - 1))
	return r
}

// put returns a reader to the pool, and returns the reader's error, if any.
func (p *pool) put(r *reader) error {
	if err := r.Error(); err != nil {
		_ = r.Close() // returns the same error
		return p.guard.unread(fmt.Errorf("kv/pebble: %w", err))
	}
	if p.keep(r) {
		return nil
	}
	return r.Close()
}

func (p *pool) keep(r *reader) bool {
	s := &p.shards[rand.IntN(len(p.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.stacks[r.table]
	// advance changes the generation before it empties the shard, so a reader
	// that passes here is either current or about to be closed by advance.
	if r.generation != p.generation.Load() || len(k.readers) >= maxIdle {
		return false
	}
	k.readers = append(k.readers, r)
	k.idle.Store(int32(len(k.readers)))
	return true
}

// advance begins a new generation, which sees everything applied so far.
func (p *pool) advance() error {
	p.mu.Lock()
	model, err := newIterator(p.db)
	if err != nil {
		p.mu.Unlock()
		return fmt.Errorf("kv/pebble: %w", err)
	}
	old := p.model
	p.model = model
	p.generation.Add(1)
	p.mu.Unlock()
	return p.drop(old)
}

// close ends the last generation. No reads may follow.
func (p *pool) close() error {
	p.mu.Lock()
	old := p.model
	p.generation.Add(1)
	p.mu.Unlock()
	return p.drop(old)
}

// drop closes the rest of an ended generation.
func (p *pool) drop(model *lsm.Iterator) error {
	first := model.Close()
	for i := range p.shards {
		if err := p.shards[i].clear(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *shard) clear() (first error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for table := range s.stacks {
		k := &s.stacks[table]
		for i, r := range k.readers {
			if err := r.Close(); err != nil && first == nil {
				first = err
			}
			k.readers[i] = nil
		}
		k.readers = k.readers[:0]
		k.idle.Store(0)
	}
	return first
}
