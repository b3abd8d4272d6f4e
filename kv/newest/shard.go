package newest

import (
	"math"
	"sync"
)

const (
	// generations is how many maps a shard has.
	generations = 2
	// entryBytes is the memory of an entry without its key and its value, measured.
	entryBytes = 105
	// never is since of a partition without rows.
	never = math.MaxUint64
)

// shard holds a part of the entries in two generations: an entry that is used moves to the
// young one, and when that is full, the old one is dropped and the young one takes its place.
type shard struct {
	mu         sync.Mutex
	begun      bool             // guarded by mu, as are all fields: through is known
	through    uint64           // the last block as of which the entries are the newest versions
	young, old map[string]entry // by key
	size       int64            // bytes of the young generation
	limit      int64            // of size
}

// entry is the newest version of a row.
type entry struct {
	since uint64 // the block that wrote it; never if there is none
	value string
}

// existed reports whether the entry is the newest version as of a block too.
func (e entry) existed(at uint64) bool { return e.since <= at || e.since == never }

// resize drops all entries and changes the limit.
func (s *shard) resize(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.young, s.old, s.size = make(map[string]entry), nil, 0
}

func (s *shard) reset(through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.through = true, through
	s.young, s.old, s.size = make(map[string]entry), nil, 0
}

func (s *shard) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.young) == 0 && len(s.old) == 0
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
func (s *shard) find(key []byte, at uint64, dst []byte) (value []byte, since uint64, found outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || at > s.through {
		return dst, 0, beyond
	}
	e, ok := s.young[string(key)]
	if !ok {
		if e, ok = s.old[string(key)]; ok {
			delete(s.old, string(key))
			s.put(string(key), e)
		}
	}
	if !ok || !e.existed(at) {
		return dst, 0, miss
	}
	return append(dst, e.value...), e.since, hit
}

// keep adds what was read from the store as of a block. Only the newest version as of
// through is kept: a block that has settled meanwhile may have written another.
func (s *shard) keep(key []byte, at, since uint64, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == s.through {
		delete(s.old, string(key))
		s.put(string(key), entry{since, string(value)})
	}
}

// put adds an entry to the young generation.
func (s *shard) put(key string, e entry) {
	size := int64(entryBytes + len(key) + len(e.value))
	if s.size+size > s.limit {
		s.young, s.old, s.size = make(map[string]entry), s.young, 0
	}
	if before, ok := s.young[key]; ok {
		size = int64(len(e.value) - len(before.value))
	}
	s.young[key] = e
	s.size += size
}

// advance replaces the entries of rows that blocks up to through have written, in ascending
// order of blocks.
func (s *shard) advance(through uint64, rows []written) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.through = true, through
	for _, row := range rows {
		key, newer := string(row.key), entry{row.sort, string(row.value)}
		if _, ok := s.young[key]; ok {
			s.put(key, newer)
		} else if _, ok := s.old[key]; ok {
			s.old[key] = newer
		}
	}
}
