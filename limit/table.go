package limit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
)

// Table keeps a Meter for each key that has something to be counted against it, and
// forgets the one that was quiet longest where there are too many.
type Table[K comparable] struct {
	rate Rate

	size  atomic.Int64 // of meters, so that nobody waits to look into an empty table
	mu    sync.Mutex
	byKey lru.BasicLRU[K, *Meter] // guarded by mu
}

// NewTable returns a table of at most max keys, each of which has a rate of its own.
func NewTable[K comparable](r Rate, max int) *Table[K] {
	return &Table[K]{rate: r, byKey: lru.NewBasicLRU[K, *Meter](max)}
}

// Len is how many keys are in the table.
func (t *Table[K]) Len() int { return int(t.size.Load()) }

// Spend counts one against a key, or says by how much it is too many, and counts none.
func (t *Table[K]) Spend(now time.Time, key K) (Excess, bool) {
	if t.rate.Unlimited() {
		return Excess{}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.byKey.Get(key)
	if !ok {
		m = NewMeter(t.rate)
		t.byKey.Add(key, m)
		t.size.Store(int64(t.byKey.Len()))
	}
	return m.Spend(now, 1)
}
