package limit

import "sync/atomic"

// Budget bounds how many bytes callers may hold at once. A caller may hold no more than is
// left then: one alone half, two a third each, and so on. So something is left for a
// newcomer, however much others hold, and for however long.
type Budget struct {
	max  atomic.Int64
	held atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int64) *Budget {
	b := new(Budget)
	b.SetMax(max)
	return b
}

// SetMax changes how many bytes may be held. Callers that hold more keep them.
func (b *Budget) SetMax(max int64) { b.max.Store(max) }

// Take counts bytes that a caller holds until it gives them back. It returns false and
// counts nothing if there are no more, or no more for the caller.
func (b *Budget) Take(who *Holding, bytes int64) bool {
	all, own := b.held.Add(bytes), who.bytes.Add(bytes)
	if own > b.max.Load()-all {
		b.Give(who, bytes)
		return false
	}
	return true
}

// Give ends what Take has begun.
func (b *Budget) Give(who *Holding, bytes int64) {
	who.bytes.Add(-bytes)
	b.held.Add(-bytes)
}

// Held is how many bytes are held now.
func (b *Budget) Held() int64 { return b.held.Load() }

// grain is the bytes by which a Lease grows, so that small steps are not counted one by
// one. The first grain is free: most requests and answers are smaller, and counting them
// would cost more than it bounds.
const grain = 8 << 10

// Holding is what one caller holds of a budget. The zero value is nothing.
type Holding struct{ bytes atomic.Int64 }

// Lease is what one request of a caller holds of a budget. It belongs to one goroutine.
// Its zero value, with a Budget and a Holding, holds nothing; without them it is not bounded.
type Lease struct {
	Budget *Budget
	Caller *Holding
	bytes  int64
}

// Hold makes the lease at least bytes large. It returns false if there are no more bytes,
// or no more for its caller.
func (l *Lease) Hold(bytes int) bool {
	if l.Budget == nil || int64(bytes) <= max(l.bytes, grain) {
		return true
	}
	more := (int64(bytes)+grain-1)/grain*grain - l.bytes
	if !l.Budget.Take(l.Caller, more) {
		return false
	}
	l.bytes += more
	return true
}

// HoldAll is Hold without a free grain: for one of many requests that a client has at once.
func (l *Lease) HoldAll(bytes int) bool {
	more := int64(bytes) - l.bytes
	if l.Budget == nil || more <= 0 {
		return true
	}
	if !l.Budget.Take(l.Caller, more) {
		return false
	}
	l.bytes += more
	return true
}

// Shrink gives back what the lease has more than Hold(bytes) would take.
func (l *Lease) Shrink(bytes int) {
	needed := int64(0)
	if bytes > grain {
		needed = (int64(bytes) + grain - 1) / grain * grain
	}
	if less := l.bytes - needed; less > 0 {
		l.Budget.Give(l.Caller, less)
		l.bytes = needed
	}
}

// Release gives everything back.
func (l *Lease) Release() {
	if l.bytes > 0 {
		l.Budget.Give(l.Caller, l.bytes)
		l.bytes = 0
	}
}

// Held is how many bytes the lease holds.
func (l *Lease) Held() int { return int(l.bytes) }
