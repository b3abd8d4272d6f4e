package limit

import (
	"math"
	"sync"
	"time"
)

// Rate is how much may be spent. Its zero value is no limit.
type Rate struct {
	PerSecond float64 // credits
	Burst     int     // credits that may be spent at once after a pause
}

// Unlimited reports whether there is no limit.
func (r Rate) Unlimited() bool { return r.PerSecond <= 0 }

// Excess is by how much a request exceeds a rate, in the terms of the answer to it.
type Excess struct {
	Current float64       // credits that were asked for in the last second
	Allowed float64       // credits a second
	Wait    time.Duration // after which the same would be allowed
}

// Meter counts credits against a Rate.
type Meter struct {
	rate Rate

	mu     sync.Mutex
	tokens float64   // guarded by mu: credits that could be spent at that time; negative: owed
	at     time.Time // guarded by mu
	share  float64   // guarded by mu: of the rate, which this process may spend
	total  counters  // guarded by mu
	second int64     // guarded by mu: the Unix second that asked counts
	asked  float64   // guarded by mu: credits in that second
	before float64   // guarded by mu: credits in the second before
}

// counters are credits since the process began to count.
type counters struct{ asked, spent float64 }

// NewMeter returns a meter whose burst is there to be spent.
func NewMeter(r Rate) *Meter { return &Meter{rate: r, tokens: float64(r.Burst), share: 1} }

// Next returns a meter of another rate, which begins with what is left of m's burst and
// not with a full one, or with m's debt.
func (m *Meter) Next(now time.Time, r Rate) *Meter {
	next := NewMeter(r)
	if m.rate.Unlimited() || r.Unlimited() {
		return next
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refill(now)
	spent := m.share*float64(m.rate.Burst) - math.Floor(m.tokens)
	next.share, next.at = m.share, now
	next.tokens = max(m.share*float64(r.Burst)-spent, min(0, m.tokens))
	return next
}

// Rate is what the meter counts against.
func (m *Meter) Rate() Rate { return m.rate }

// rounding forgives what is lost to the precision of numbers.
const rounding = 1e-6

// Spend takes credits, or says by how much they are too many, and takes none. More
// than the burst are taken like the burst, or they could never be had.
func (m *Meter) Spend(now time.Time, credits int) (Excess, bool) {
	if m.rate.Unlimited() {
		return Excess{}, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.count(now, float64(credits))
	m.refill(now)
	taken := min(float64(credits), float64(m.rate.Burst))
	need := min(taken, m.share*float64(m.rate.Burst)) // more is never there, see Group
	if m.tokens+rounding < need {
		return Excess{Current: current, Allowed: m.rate.PerSecond, Wait: m.wait(need - m.tokens)}, false
	}
	m.take(taken)
	return Excess{}, true
}

// Return gives back credits that Spend has just taken.
func (m *Meter) Return(credits int) {
	if m.rate.Unlimited() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := min(float64(credits), float64(m.rate.Burst))
	m.tokens = min(m.tokens+taken, max(m.tokens, m.share*float64(m.rate.Burst)))
	m.total.spent -= taken
}

// wait returns how long it takes until there are more credits. A small share grows with what
// is asked for.
func (m *Meter) wait(more float64) time.Duration {
	seconds := more / m.rate.PerSecond
	if m.share < 1 {
		seconds = min(seconds/m.share, seconds+roundTime.Seconds())
	}
	return time.Duration(math.Round(seconds * 1e9))
}

// refill adds the credits since the last call. A clock that is set back adds none.
func (m *Meter) refill(now time.Time) {
	if passed := now.Sub(m.at); passed > 0 {
		full := m.share * float64(m.rate.Burst)
		if m.tokens < full {
			m.tokens = min(full, m.tokens+m.share*m.rate.PerSecond*passed.Seconds())
		}
		m.at = now
	}
}

func (m *Meter) take(credits float64) {
	m.tokens -= credits
	m.total.spent += credits
}

// Owe takes credits, even more than there are: later calls wait until they have been paid
// back. It is for work that was done before its price was known.
func (m *Meter) Owe(now time.Time, credits int) {
	if m.rate.Unlimited() || m.rate.Burst <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(now, float64(credits))
	m.refill(now)
	m.take(float64(credits))
}

// counted returns the counters, and the credits that could be spent now.
func (m *Meter) counted(now time.Time) (total counters, tokens float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refill(now)
	return m.total, m.tokens
}

// divided returns the share of the rate that this process may spend.
func (m *Meter) divided() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.share
}

// divide sets the share of the rate that this process may spend, and the credits that it can
// spend now.
func (m *Meter) divide(now time.Time, share, tokens float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.share, m.tokens, m.at = share, tokens, now
}

// Recent is how many credits were asked for in the second before now, including refused ones.
func (m *Meter) Recent(now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count(now, 0)
}

// count adds credits to what was asked for lately and returns that, by the second. m.mu must
// be held.
func (m *Meter) count(now time.Time, credits float64) float64 {
	m.total.asked += credits
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
