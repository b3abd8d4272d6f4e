package feed

import (
	"slices"
	"sync"
	"time"
)

// Journal is a bounded record of events, in order. A position in it is the number of
// events before. It may be used from many goroutines at once.
type Journal[E any] struct {
	maxBytes int
	maxAge   time.Duration
	now      func() time.Time

	mu      sync.Mutex
	first   uint64            // guarded by mu: the position of entries[0]
	entries []journalEntry[E] // guarded by mu
	bytes   int               // guarded by mu: of all entries
}

type journalEntry[E any] struct {
	value E
	bytes int
	at    time.Time
}

// NewJournal makes a journal that keeps the events of the last maxAge, as far as they fit
// into maxBytes. now returns the time.
func NewJournal[E any](maxBytes int, maxAge time.Duration, now func() time.Time) *Journal[E] {
	return &Journal[E]{maxBytes: maxBytes, maxAge: maxAge, now: now}
}

// Append adds an entry that takes that many bytes, and drops old entries as the limits
// require. An entry that is too large by itself is dropped at once: readers at or before
// it have then fallen behind.
func (j *Journal[E]) Append(value E, bytes int) {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, journalEntry[E]{value, bytes, now})
	j.bytes += bytes
	j.drop(now)
}

// drop removes entries as the limits require. mu is held.
func (j *Journal[E]) drop(now time.Time) {
	n := 0
	for ; n < len(j.entries) && (j.bytes > j.maxBytes || now.Sub(j.entries[n].at) > j.maxAge); n++ {
		j.bytes -= j.entries[n].bytes
	}
	j.entries = slices.Delete(j.entries, 0, n)
	j.first += uint64(n)
}

// Break drops all entries and skips a position, so that every reader has fallen behind:
// the next entry does not follow on the last one.
func (j *Journal[E]) Break() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.first += uint64(len(j.entries)) + 1
	j.entries, j.bytes = nil, 0
}

// Expire drops old entries. It is needed when nothing is appended.
func (j *Journal[E]) Expire() {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop(now)
}

// End returns the position after the last entry.
func (j *Journal[E]) End() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first + uint64(len(j.entries))
}

// Since returns the entries from a position on, and the position after them. It returns
// false if some of these entries have been dropped. The caller owns the slice.
func (j *Journal[E]) Since(position uint64) (values []E, end uint64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if position < j.first {
		return nil, 0, false
	}
	for _, entry := range j.entries[position-j.first:] {
		values = append(values, entry.value)
	}
	return values, j.first + uint64(len(j.entries)), true
}
