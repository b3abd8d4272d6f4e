package limit

import "sync/atomic"

// Budget bounds how many bytes may be held at once by all who ask it. A caller may hold
// no more than is left then: one alone half, two a third each, and so on. So something
// is left for whoever comes next, however much others hold, and for however long.
type Budget struct {
	max  int64
	held atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Held is how many bytes are held now.
func (b *Budget) Held() int64 { return b.held.Load() }

// grain is the bytes by which a Lease grows, so that what grows in small steps is
// counted in few. It has the first for nothing: most requests and answers are smaller,
// and counting them would cost more than it bounds.
const grain = 8 << 10

// Holding is what one caller holds of a budget. The zero value is nothing.
type Holding struct{ bytes atomic.Int64 }

// Lease is what one request of a caller holds of a budget. It belongs to one goroutine.
// Its zero value, with a Budget and a Holding, holds nothing.
type Lease struct {
	Budget *Budget
	Caller *Holding
	bytes  int64
}

// Hold makes the lease at least bytes large, or returns false where there is no more,
// or no more for its caller.
func (l *Lease) Hold(bytes int) bool {
	if int64(bytes) <= max(l.bytes, grain) {
		return true
	}
	more := (int64(bytes)+grain-1)/grain*grain - l.bytes
	all, own := l.Budget.held.Add(more), l.Caller.bytes.Add(more)
	if own > l.Budget.max-all {
		l.give(more)
		return false
	}
	l.bytes += more
	return true
}

// Release gives everything back.
func (l *Lease) Release() {
	if l.bytes > 0 {
		l.give(l.bytes)
		l.bytes = 0
	}
}

func (l *Lease) give(bytes int64) {
	l.Caller.bytes.Add(-bytes)
	l.Budget.held.Add(-bytes)
}
