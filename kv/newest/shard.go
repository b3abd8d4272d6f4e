package newest

import (
	"math"
	"sync"

	"ashlar/kv/packed"
)

const (
	// generations is how many generations a shard has.
	generations = 2
	// never is since of a partition without rows.
	never = math.MaxUint64
	// unknown is since of an entry whose newest version is not kept.
	unknown = never - 1
)

// shard holds a part of the entries in two generations: an entry that is used moves to the
// young one, and when that is full, the old one is dropped and the young one takes its place.
// Of an entry that is in both, the one in the young generation counts.
type shard struct {
	mu         sync.Mutex
	begun      bool        // guarded by mu, as are all fields: through is known
	through    uint64      // the last block as of which the entries are the newest versions
	young, old packed.Rows // values are empty if since is never
}

// resize drops all entries and changes how many bytes a generation takes.
func (s *shard) resize(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young, s.old = packed.Within(limit), packed.Within(limit)
}

func (s *shard) reset(through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.through = true, through
	s.young.Clear()
	s.old.Clear()
}

func (s *shard) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.young.Len() == 0 && s.old.Len() == 0
}

// outcome is what a look-up has found.
type outcome uint8

const (
	hit    outcome = iota
	miss           // the row may be kept once it was read
	beyond         // the block is after through
)

// find appends the value of an entry to dst, if the entry is the newest version as of a
// block.
func (s *shard) find(hash uint64, key []byte, at uint64, dst []byte) (value []byte, since uint64, found outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || at > s.through {
		return dst, 0, beyond
	}
	r := s.young.Find(hash, key)
	old := !r.Exists()
	if old {
		r = s.old.Find(hash, key)
	}
	if !r.Exists() || r.Since() == unknown {
		return dst, 0, miss
	}
	since, value = r.Since(), append(dst, r.Value()...)
	if old {
		s.put(hash, key, since, value[len(dst):])
	}
	if since > at && since != never {
		return dst, 0, miss
	}
	return value, since, hit
}

// keep adds what was read from the store as of a block. Only the newest version as of
// through is kept: a block that has settled meanwhile may have written another.
func (s *shard) keep(hash uint64, key []byte, at, since uint64, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == s.through {
		s.put(hash, key, since, value)
	}
}

// put adds an entry to the young generation. An entry that is too large is no longer kept.
func (s *shard) put(hash uint64, key []byte, since uint64, value []byte) {
	if !s.young.Fits(key, value) {
		for _, g := range []*packed.Rows{&s.young, &s.old} {
			if r := g.Find(hash, key); r.Exists() {
				r.Replace(unknown, nil)
			}
		}
		return
	}
	if !s.young.Put(hash, key, since, value) {
		s.young, s.old = s.old, s.young
		s.young.Clear()
		s.young.Put(hash, key, since, value)
	}
}

// advance replaces the entries of rows that blocks up to through have written, in ascending
// order of blocks.
func (s *shard) advance(through uint64, rows []written) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.through = true, through
	for _, row := range rows {
		r := s.young.Find(row.hash, row.key)
		if !r.Exists() {
			r = s.old.Find(row.hash, row.key)
		}
		if r.Exists() && !r.Replace(row.sort, row.value) {
			s.put(row.hash, row.key, row.sort, row.value)
		}
	}
}
