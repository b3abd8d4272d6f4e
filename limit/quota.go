package limit

import (
	"sync"
	"time"
)

// Day counts what is spent in one day, UTC. The zero value has spent nothing.
type Day struct {
	mu   sync.Mutex
	day  int64  // guarded by mu: days since 1970
	used uint64 // guarded by mu: credits
}

const secondsOfDay = 24 * 60 * 60

// Spend takes credits if no more than quota are spent with them that day; else it
// takes none and returns how long it is until the next day. A quota of 0 is no limit,
// but is counted all the same.
func (d *Day) Spend(now time.Time, credits int, quota uint64) (wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	if quota > 0 && d.used+uint64(credits) > quota {
		next := time.Unix((d.day+1)*secondsOfDay, 0)
		return next.Sub(now), false
	}
	d.used += uint64(credits)
	return 0, true
}

// Return gives credits back that were taken at about now.
func (d *Day) Return(now time.Time, credits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.used -= min(d.used, uint64(credits))
}

// Add counts credits whatever the quota is: those that were spent before this Day was
// made, or whose number was known only afterwards.
func (d *Day) Add(now time.Time, credits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.used += uint64(credits)
}

// Used is what was spent in the day of now.
func (d *Day) Used(now time.Time) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	return d.used
}

// turn begins a new day. A clock that is set back does not give the quota again: what was
// spent counts for the day that the clock shows now. So a clock that was ahead for a while
// does not keep a quota spent until the day that it showed.
func (d *Day) turn(now time.Time) {
	day := now.Unix() / secondsOfDay
	if day > d.day {
		d.used = 0
	}
	d.day = day
}
