package cassandra

import (
	"sync/atomic"
	"time"
)

// clock gives the timestamps of rows, in microseconds. Each is greater than the one before,
// because of two changes with the same timestamp the removal wins, not the later one.
type clock struct{ last atomic.Int64 }

// next returns the next timestamp.
func (c *clock) next() int64 {
	for {
		last := c.last.Load()
		next := max(last+1, time.Now().UnixMicro())
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
