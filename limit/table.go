package limit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
)

// Table keeps a Meter for each key that something was counted against. If there are too
// many, it drops the one that was used least recently.
type Table[K comparable] struct {
	rate Rate

	size  atomic.Int64 // number of meters
	mu    sync.Mutex
	byKey lru.BasicLRU[K, *Meter] // guarded by mu
}

// NewTable returns a table of at most max keys, each of which has a rate of its own.
func NewTable[K comparable](r Rate, max int) *Table[K] {
	return &Table[K]{rate: r, byKey: lru.NewBasicLRU[K, *Meter](max)}
}

// Len is how many keys are in the table.
func (t *Table[K]) Len() int { return int(t.size.Load()) }

// Spend counts one against a key. If that is too many, it counts nothing and returns by
// how much.
func (t *Table[K]) Spend(now time.Time, key K) (Excess, bool) {
	if t.rate.Unlimited() {
		return Excess{}, true
	}
	return t.Meter(key).Spend(now, 1)
}

// Meter returns the meter of a key. A meter that the table has dropped still works, but the
// table makes another one for the key then, which begins with a full burst. So do not keep it.
func (t *Table[K]) Meter(key K) *Meter {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.byKey.Get(key)
	if !ok {
		m = NewMeter(t.rate)
		t.byKey.Add(key, m)
		t.size.Store(int64(t.byKey.Len()))
	}
	return m
}
