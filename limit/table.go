package limit

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Table keeps a Meter for each key that has something to be counted against it, and
// forgets the one that was quiet longest where there are too many.
type Table[K comparable] struct {
	rate Rate
	max  int

	size  atomic.Int64 // of meters, so that nobody waits to look into an empty table
	mu    sync.Mutex
	byKey map[K]*list.Element // guarded by mu; of *entry[K]
	order *list.List          // guarded by mu: the one counted last is in front
}

type entry[K comparable] struct {
	key   K
	meter *Meter
}

// NewTable returns a table of at most max keys, each of which has a rate of its own.
func NewTable[K comparable](r Rate, max int) *Table[K] {
	return &Table[K]{rate: r, max: max, byKey: make(map[K]*list.Element), order: list.New()}
}

// Len is how many keys are in the table.
func (t *Table[K]) Len() int { return int(t.size.Load()) }

// Blocked says whether a key has spent all that it has, and for how long yet.
func (t *Table[K]) Blocked(now time.Time, key K) (Excess, bool) {
	if t.rate.Unlimited() || t.size.Load() == 0 {
		return Excess{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.byKey[key]
	if found == nil {
		return Excess{}, false
	}
	m := found.Value.(*entry[K]).meter
	if m.limiter.TokensAt(now) >= 1 {
		return Excess{}, false
	}
	excess, ok := m.Spend(now, 1)
	return excess, !ok
}

// Spend counts one against a key, or says by how much it is too many, and counts none.
func (t *Table[K]) Spend(now time.Time, key K) (Excess, bool) {
	if t.rate.Unlimited() {
		return Excess{}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.byKey[key]
	if found == nil {
		found = t.order.PushFront(&entry[K]{key, NewMeter(t.rate)})
		t.byKey[key] = found
		if t.order.Len() > t.max {
			delete(t.byKey, t.order.Remove(t.order.Back()).(*entry[K]).key)
		}
		t.size.Store(int64(t.order.Len()))
	} else {
		t.order.MoveToFront(found)
	}
	return found.Value.(*entry[K]).meter.Spend(now, 1)
}
