// Package rowcache keeps rows of a distributed store in memory, and on a local disk.
//
// The rows of settled blocks never change, so what was read of them needs no invalidation.
// The absence of a newer row at or below a settled block is kept as well. When further
// blocks settle, [Store.Follow] gets their rows: the newest versions at the head stay known
// without being read again.
//
//	read at block 90     rows up to 90 are known: 17, 42
//	blocks 91, 92 settle, 92 wrote the partition
//	                     rows up to 92 are known: 17, 42, 92
//
// A store is removed rows from only by a rewind, after which it must be opened again.
package rowcache

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"

	"golang.org/x/sync/semaphore"
)

// DefaultBytes bounds the memory of a cache if nothing else is said.
const DefaultBytes = 64 << 20

// Options say how much a cache keeps.
type Options struct {
	Bytes int64 // in memory; 0: DefaultBytes
	Disk  DiskOptions
}

// Store is a store whose settled rows are kept when they are read. Nothing is kept before
// the first call of Follow.
type Store struct {
	kv.Store
	limit        int64
	disk         *disk // may be nil
	hits, misses atomic.Int64
	waits        atomic.Int64        // for reads of the store
	aside        *semaphore.Weighted // bounds what Prefetch reads at once if nothing waits for it
	underWay     underWay

	// One lock: what it protects takes less than a microsecond, and a read of the store
	// takes a thousand.
	mu      sync.Mutex
	entries map[string]*list.Element // of *entry; guarded by mu, as all below
	recent  *list.List               // the entry used last comes first
	bytes   int64
	known   bool   // whether settled is known
	settled uint64 // the last settled block
	// generation counts the times that settled has moved on by blocks with unknown rows.
	// Spans of an earlier one do not grow.
	generation uint64
}

// New returns a store with a cache of its rows. The store must be one that another process
// writes to: rows that are written through it are not seen in the cache. The result must be
// closed, which closes the store too.
func New(ctx context.Context, store kv.Store, o Options) (*Store, error) {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	s := &Store{Store: store, limit: o.Bytes, entries: map[string]*list.Element{}, recent: list.New(), generation: 1, aside: semaphore.NewWeighted(asideAtOnce), underWay: underWay{reads: map[string]chan struct{}{}}}
	if o.Disk.Dir == "" {
		return s, nil
	}
	var err error
	s.disk, err = openDisk(ctx, o.Disk)
	return s, err
}

// Post implements kv.Board, if the store does.
func (s *Store) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if board, ok := s.Store.(kv.Board); ok {
		return board.Post(ctx, name, value, keep)
	}
	return errors.ErrUnsupported
}

// Posts implements kv.Board, if the store does.
func (s *Store) Posts(ctx context.Context) (map[string][]byte, error) {
	if board, ok := s.Store.(kv.Board); ok {
		return board.Posts(ctx)
	}
	return nil, errors.ErrUnsupported
}

// Close implements kv.Store.
func (s *Store) Close() error {
	err := s.Store.Close()
	if s.disk != nil {
		err = errors.Join(err, s.disk.close())
	}
	return err
}

// named reports whether rows of a table are read by their full names, and so kept one by
// one. Such a row is a partition of its own in the cache.
func named(t *kv.Table) bool {
	return t.Kind == kv.List && (t.Single || t.Expected && t.IndexBits == 0)
}

// keyRoom is the size of a buffer for nearly all keys.
const keyRoom = 128

// key appends the name of a partition, or of a row in tables with rows that are read by
// their names.
func key(dst []byte, t *kv.Table, partition []byte, sort uint64) []byte {
	dst = append(append(dst, t.ID), partition...)
	if !named(t) {
		return dst
	}
	return binary.BigEndian.AppendUint64(dst, sort)
}

// mark is the moment at which a read begins: what it finds holds up to this block.
type mark struct {
	known      bool
	settled    uint64
	generation uint64
	ahead      bool // nothing waits for the read
}

// begin returns the moment of a read that begins now.
func (s *Store) begin(ctx context.Context) mark {
	ahead := kv.IsAside(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return mark{s.known, s.settled, s.generation, ahead}
}

// last is the greatest sort key that a row of a settled block can have.
func last(t *kv.Table, settled uint64) uint64 {
	if settled >= math.MaxUint64>>t.IndexBits {
		return math.MaxUint64
	}
	return (settled+1)<<t.IndexBits - 1
}

// end is the sort key up to which a span holds.
func (s *Store) end(t *kv.Table, p *span) uint64 {
	if p.growing == s.generation {
		p.to = last(t, s.settled)
	}
	return p.to
}

// look returns the span that has a sort key, for a read. Its rows must not be changed.
func (s *Store) look(ctx context.Context, t *kv.Table, partition []byte, sort uint64) (span, bool) {
	aside := kv.IsAside(ctx)
	p, ok := s.find(ctx, t, partition, sort, !aside)
	if ok && !p.ahead && !aside {
		s.hits.Add(1)
	}
	return p, ok
}

// find is look for a read, or only to know what is known.
func (s *Store) find(ctx context.Context, t *kv.Table, partition []byte, sort uint64, reading bool) (span, bool) {
	if t.Transient {
		return span{}, false
	}
	p, ok := s.findInMemory(t, partition, sort, reading)
	if ok || s.disk == nil {
		return p, ok
	}
	m := s.begin(ctx)
	if !m.known || sort > last(t, m.settled) {
		return span{}, false
	}
	if p, ok = s.disk.look(ctx, t, partition, sort); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.insert(string(key(nil, t, partition, p.from)), t, p)
	}
	return p, ok
}

func (s *Store) findInMemory(t *kv.Table, partition []byte, sort uint64, reading bool) (span, bool) {
	var room [keyRoom]byte
	k := key(room[:0], t, partition, sort)
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.entries[string(k)]
	if element == nil {
		return span{}, false
	}
	e := element.Value.(*entry)
	for i := range e.spans {
		p := &e.spans[i]
		if end := s.end(t, p); p.from <= sort && sort <= end {
			s.recent.MoveToFront(element)
			found := *p
			p.ahead = p.ahead && !reading
			return found, true
		}
	}
	return span{}, false
}

// keep records the rows that a read found between two sort keys. It takes the rows.
func (s *Store) keep(m mark, t *kv.Table, partition []byte, p span) {
	if !m.known || t.Transient {
		return
	}
	end := last(t, m.settled)
	if p.to >= end {
		p.rows, p.to, p.growing = p.upTo(end), end, m.generation
	}
	if p.from > p.to || named(t) && len(p.rows) == 0 {
		return
	}
	if named(t) {
		p.growing = 0
	}
	if s.disk != nil {
		s.disk.keep(t, partition, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.settled != s.settled || m.generation != s.generation {
		p.growing = 0 // rows of later blocks may be missing
	}
	p.ahead = m.ahead
	s.insert(string(key(nil, t, partition, p.from)), t, p)
}

// insert adds a span. s.mu must be held.
func (s *Store) insert(k string, t *kv.Table, p span) {
	element := s.entries[k]
	if element == nil {
		element = s.recent.PushFront(&entry{key: k})
		s.entries[k] = element
	}
	e := element.Value.(*entry)
	if named(t) {
		e.spans = append(e.spans[:0], p)
	} else {
		for i := range e.spans {
			s.end(t, &e.spans[i])
			if e.spans[i].growing != s.generation {
				e.spans[i].growing = 0
			}
		}
		e.add(p)
	}
	s.resized(element)
	for s.bytes > s.limit {
		s.evict(s.recent.Back())
	}
}

func (s *Store) resized(element *list.Element) {
	e := element.Value.(*entry)
	size := e.measure()
	s.bytes += size - e.size
	e.size = size
}

func (s *Store) evict(element *list.Element) {
	e := s.recent.Remove(element).(*entry)
	delete(s.entries, e.key)
	s.bytes -= e.size
}

// Follow implements kv.Follower.
func (s *Store) Follow(block uint64, rows iter.Seq2[*kv.Table, kv.Row]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && block <= s.settled {
		return
	}
	if s.known && rows != nil {
		for t, r := range rows {
			s.add(t, r)
		}
	} else {
		s.generation++
	}
	s.known, s.settled = true, block
	for s.bytes > s.limit {
		s.evict(s.recent.Back())
	}
}

// add adds a row of a block that settles. s.mu must be held.
func (s *Store) add(t *kv.Table, r kv.Row) {
	if t.Transient {
		return
	}
	var room [keyRoom]byte
	k := key(room[:0], t, r.Partition, r.Sort)
	element := s.entries[string(k)]
	if element == nil && t.Kind == kv.List && !named(t) {
		return // the rows before it are not known
	}
	added := row{r.Sort, append([]byte{}, r.Value...)}
	if named(t) {
		p := span{from: r.Sort, to: r.Sort, rows: []row{added}}
		s.insert(string(k), t, p)
		if s.disk != nil {
			s.disk.keep(t, r.Partition, p)
		}
		return
	}
	grown := false
	if element != nil {
		e := element.Value.(*entry)
		for i := range e.spans {
			if e.spans[i].growing == s.generation {
				e.spans[i].grow(added)
				grown = true
			}
		}
		s.resized(element)
	}
	if !grown && t.Kind == kv.Versions {
		s.insert(string(k), t, span{from: r.Sort, to: r.Sort, rows: []row{added}, growing: s.generation})
	}
}

// Stats implements kv.Store. It counts the reads that the cache has answered.
func (s *Store) Stats() kv.Stats {
	stats := s.Store.Stats()
	stats.CacheHits, stats.CacheMisses, stats.RoundTrips = max(s.hits.Load(), 0), s.misses.Load(), s.waits.Load()
	if s.disk != nil {
		stats.KeepsRows = new(s.disk.accepts())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.MemoryBytes += s.bytes
	return stats
}

// missed counts reads that are made at once.
func (s *Store) missed(ctx context.Context, reads int) {
	s.misses.Add(int64(reads))
	if !kv.IsAside(ctx) {
		s.waited(ctx)
	}
}

// waited counts a wait for reads.
func (s *Store) waited(ctx context.Context) {
	s.waits.Add(1)
	kv.Waited(ctx)
}
