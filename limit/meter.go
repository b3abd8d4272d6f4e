package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how much may be spent. Its zero value is no limit.
type Rate struct {
	PerSecond float64 // credits
	Burst     int     // credits that may be spent at once after a pause
}

// Unlimited says whether there is no limit.
func (r Rate) Unlimited() bool { return r.PerSecond <= 0 }

// Excess is by how much a request exceeds a rate, in the terms of the answer to it.
type Excess struct {
	Current float64       // credits that were asked for in the last second
	Allowed float64       // credits a second
	Wait    time.Duration // after which the same would be allowed
}

// Meter counts credits against a Rate.
type Meter struct {
	rate    Rate
	limiter *rate.Limiter

	mu     sync.Mutex
	second int64   // guarded by mu: the Unix second that asked counts
	asked  float64 // guarded by mu: credits in that second
	before float64 // guarded by mu: credits in the second before
}

// NewMeter returns a meter whose burst is there to be spent.
func NewMeter(r Rate) *Meter {
	return &Meter{rate: r, limiter: rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)}
}

// Next returns a meter of another rate, which begins with what is left of m's burst and
// not with a full one.
func (m *Meter) Next(now time.Time, r Rate) *Meter {
	next := NewMeter(r)
	if !m.rate.Unlimited() && !r.Unlimited() {
		spent := m.rate.Burst - int(m.limiter.TokensAt(now))
		next.limiter.AllowN(now, min(spent, r.Burst))
	}
	return next
}

// Rate is what the meter counts against.
func (m *Meter) Rate() Rate { return m.rate }

// Spend takes credits, or says by how much they are too many, and takes none. More
// than the burst are taken like the burst, or they could never be had.
func (m *Meter) Spend(now time.Time, credits int) (Excess, bool) {
	if m.rate.Unlimited() {
		return Excess{}, true
	}
	current := m.count(now, float64(credits))
	credits = min(credits, m.rate.Burst)
	if m.limiter.AllowN(now, credits) {
		return Excess{}, true
	}
	r := m.limiter.ReserveN(now, credits)
	wait := r.DelayFrom(now)
	r.CancelAt(now)
	return Excess{Current: current, Allowed: m.rate.PerSecond, Wait: wait}, false
}

// Owe takes credits, even more than there are: later calls wait until they have been paid
// back. It is for work that was done before its price was known.
func (m *Meter) Owe(now time.Time, credits int) {
	if m.rate.Unlimited() || m.rate.Burst <= 0 {
		return
	}
	m.count(now, float64(credits))
	for ; credits > 0; credits -= m.rate.Burst { // no more than the burst can be reserved at a time
		m.limiter.ReserveN(now, min(credits, m.rate.Burst))
	}
}

// Recent is how many credits were asked for in the second before now, including refused ones.
func (m *Meter) Recent(now time.Time) float64 { return m.count(now, 0) }

// count adds credits to what was asked for lately and returns that, by the second.
func (m *Meter) count(now time.Time, credits float64) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch second := now.Unix(); {
	case second == m.second:
	case second == m.second+1:
		m.second, m.before, m.asked = second, m.asked, 0
	default:
		m.second, m.before, m.asked = second, 0, 0
	}
	m.asked += credits
	// The part of the second before that lies within a second of now.
	return m.asked + m.before*(1-float64(now.Nanosecond())/1e9)
}
