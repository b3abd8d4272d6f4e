package feed

import (
	"slices"
	"sync"
	"time"
)

// Journal is a bounded record of what happened, in order. Places in it are numbers
// that only grow. It may be used from many goroutines at once.
type Journal[E any] struct {
	maxBytes int
	maxAge   time.Duration
	now      func() time.Time

	mu      sync.Mutex
	first   uint64            // guarded by mu: the place of entries[0]
	entries []journalEntry[E] // guarded by mu
	bytes   int               // guarded by mu: of all entries
}

type journalEntry[E any] struct {
	value E
	bytes int
	at    time.Time
}

// NewJournal makes a journal that keeps what has happened within maxAge, as long as
// that takes at most maxBytes. now is the time.
func NewJournal[E any](maxBytes int, maxAge time.Duration, now func() time.Time) *Journal[E] {
	return &Journal[E]{maxBytes: maxBytes, maxAge: maxAge, now: now}
}

// Append adds an entry, which takes that many bytes, and drops those that are too
// old or too much. An entry that is too large by itself is dropped at once, and with
// it whoever has not read so far.
func (j *Journal[E]) Append(value E, bytes int) {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, journalEntry[E]{value, bytes, now})
	j.bytes += bytes
	j.drop(now)
}

// drop removes what is too old or too much. mu is held.
func (j *Journal[E]) drop(now time.Time) {
	n := 0
	for ; n < len(j.entries) && (j.bytes > j.maxBytes || now.Sub(j.entries[n].at) > j.maxAge); n++ {
		j.bytes -= j.entries[n].bytes
	}
	j.entries = slices.Delete(j.entries, 0, n)
	j.first += uint64(n)
}

// Break drops all entries, and with them whoever reads the journal: what comes next does
// not follow what was there.
func (j *Journal[E]) Break() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.first += uint64(len(j.entries)) + 1
	j.entries, j.bytes = nil, 0
}

// Expire drops what is too old, for a journal that nothing is added to.
func (j *Journal[E]) Expire() {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop(now)
}

// End is the place behind the last entry.
func (j *Journal[E]) End() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first + uint64(len(j.entries))
}

// Since returns the entries from a place on, and the place behind them. It is false
// where entries from there on have been dropped. What it returns is not changed.
func (j *Journal[E]) Since(place uint64) (values []E, end uint64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if place < j.first {
		return nil, 0, false
	}
	for _, entry := range j.entries[place-j.first:] {
		values = append(values, entry.value)
	}
	return values, j.first + uint64(len(j.entries)), true
}
