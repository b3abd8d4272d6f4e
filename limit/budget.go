package limit

import "sync/atomic"

// Budget bounds how many bytes may be held at once by all who ask it.
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

// Lease is what one request holds of a budget. It belongs to one goroutine. Its zero
// value, with a Budget, holds nothing.
type Lease struct {
	Budget *Budget
	bytes  int64
}

// Hold makes the lease at least bytes large, or returns false where there is no more.
func (l *Lease) Hold(bytes int) bool {
	if int64(bytes) <= max(l.bytes, grain) {
		return true
	}
	more := (int64(bytes)+grain-1)/grain*grain - l.bytes
	if l.Budget.held.Add(more) > l.Budget.max {
		l.Budget.held.Add(-more)
		return false
	}
	l.bytes += more
	return true
}

// Release gives everything back.
func (l *Lease) Release() {
	if l.bytes > 0 {
		l.Budget.held.Add(-l.bytes)
		l.bytes = 0
	}
}
