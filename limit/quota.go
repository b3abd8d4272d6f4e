package limit

import (
	"sync"
	"time"
)

// Day counts what is spent in one day, UTC. The zero value has spent nothing.
type Day struct {
	mu     sync.Mutex
	day    int64    // guarded by mu: days since 1970
	used   uint64   // guarded by mu: credits that this process has spent
	others uint64   // guarded by mu: credits that other processes have spent, as far as is known
	before struct { // guarded by mu: the day before that one, as the clock showed them
		day  int64
		used uint64
	}

	divided bool    // guarded by mu: other processes may spend of the same quota
	share   float64 // guarded by mu: of what was left when it was divided, for this process
	spent   uint64  // guarded by mu: since then
	wanted  float64 // guarded by mu: credits asked for since the process began to count
}

const secondsOfDay = 24 * 60 * 60

// Spend takes credits if no more than quota are spent with them that day; else it
// takes none and returns how long it is until the next day. A quota of 0 is no limit,
// but is counted all the same.
func (d *Day) Spend(now time.Time, credits int, quota uint64) (wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.wanted += float64(credits)
	if quota > 0 && d.exceeds(uint64(credits), quota) {
		next := time.Unix((d.day+1)*secondsOfDay, 0)
		return next.Sub(now), false
	}
	d.take(uint64(credits))
	return 0, true
}

// exceeds reports whether credits are too many for the quota, or for this process's part of
// it. One request is allowed however small that part is.
func (d *Day) exceeds(credits, quota uint64) bool {
	if d.used+d.others+credits > quota {
		return true
	}
	if !d.divided || d.spent == 0 {
		return false
	}
	left := quota - min(quota, d.used-d.spent+d.others) // when it was divided
	return float64(d.spent+credits) > d.share*float64(left)
}

func (d *Day) take(credits uint64) {
	d.used += credits
	d.spent += credits
}

// Return gives credits back that were taken at a time. If another day has begun since, it does
// nothing: they are not among those of the new day.
func (d *Day) Return(taken time.Time, credits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dayOf(taken) < d.day {
		return
	}
	d.used -= min(d.used, uint64(credits))
	d.spent -= min(d.spent, uint64(credits))
}

// Add counts credits whatever the quota is: those that were spent before this Day was
// made, or whose number was known only afterwards.
func (d *Day) Add(now time.Time, credits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.take(uint64(credits))
}

// asked returns the credits that were asked for since the process began to count.
func (d *Day) asked() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted
}

// spentBy returns what this process has spent in the day of now. Like divide, it does not go
// back to a day that is over: midnight may have passed since now.
func (d *Day) spentBy(now time.Time) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dayOf(now) > d.day {
		return 0
	}
	return d.used
}

// divide sets what other processes have spent in the day of now, and the share of the rest
// that this process may spend. If another day has begun since now, it does nothing.
func (d *Day) divide(now time.Time, others uint64, share float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dayOf(now) < d.day {
		return
	}
	d.turn(now)
	d.others, d.share, d.spent, d.divided = others, share, 0, true
}

// Used is what was spent in the day of now.
func (d *Day) Used(now time.Time) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	return d.used + d.others
}

// turn begins a new day. A clock that is set back does not give the quota again: what was
// spent counts for the day that the clock shows now, with what was spent in that day before. So
// a clock that was ahead for a while does not keep a quota spent until the day that it showed.
func (d *Day) turn(now time.Time) {
	day := dayOf(now)
	switch {
	case day > d.day:
		d.before.day, d.before.used = d.day, d.used
		d.used, d.others, d.spent = 0, 0, 0
	case day < d.day && day == d.before.day:
		d.used += d.before.used
		d.before.used = 0
	}
	d.day = day
}
