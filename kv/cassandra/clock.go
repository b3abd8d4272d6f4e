package cassandra

import (
	"sync/atomic"
	"time"
)

// clock gives the timestamps of rows, in microseconds. Each is greater than the one before,
// because of two changes with the same timestamp the removal wins, not the later one.
type clock struct {
	last atomic.Int64
	most atomic.Int64 // what the time of the machine counts for at most; 0: without a bound
}

// next returns the next timestamp.
func (c *clock) next() int64 {
	for {
		last := c.last.Load()
		now := time.Now().UnixMicro()
		if most := c.most.Load(); most > 0 {
			now = min(now, most)
		}
		next := max(last+1, now)
		if c.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// now returns a timestamp that is not less than any that was given.
func (c *clock) now() int64 { return max(c.last.Load(), time.Now().UnixMicro()) }

// atLeast makes all further timestamps greater than at.
func (c *clock) atLeast(at int64) {
	for {
		last := c.last.Load()
		if last >= at || c.last.CompareAndSwap(last, at) {
			return
		}
	}
}

// atMost makes timestamps grow by one at a time above most, even if the machine's time is later.
func (c *clock) atMost(most int64) { c.most.Store(most) }
