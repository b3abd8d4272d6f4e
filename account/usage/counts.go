package usage

import (
	"math"
	"time"
)

// Buckets is how many classes of latency are told apart.
const Buckets = 11

// Bounds are the least times that are too long for each class but the last.
func Bounds() [Buckets - 1]time.Duration {
	return [Buckets - 1]time.Duration{
		100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond,
		30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second,
	}
}

// bucketOf is the class of a time.
func bucketOf(took time.Duration) int {
	bounds := Bounds()
	for i, bound := range bounds {
		if took < bound {
			return i
		}
	}
	return len(bounds)
}

// Counts is what is counted of calls.
type Counts struct {
	Requests uint64          `json:"requests"`
	Errors   uint64          `json:"errors"` // requests of them that were answered with an error, refusals included
	Credits  uint64          `json:"credits"`
	Time     time.Duration   `json:"time"`    // that all of them took together
	Latency  [Buckets]uint64 `json:"latency"` // how many took how long, by Bounds
}

// Add adds more to c.
func (c *Counts) Add(more Counts) {
	c.Requests += more.Requests
	c.Errors += more.Errors
	c.Credits += more.Credits
	c.Time += more.Time
	for i, n := range more.Latency {
		c.Latency[i] += n
	}
}

// Mean is how long a request took on average, 0 where there were none.
func (c *Counts) Mean() time.Duration {
	if c.Requests == 0 {
		return 0
	}
	return c.Time / time.Duration(min(c.Requests, math.MaxInt64))
}

// Quantile is about how long the fastest part of requests took at most, q being that
// part, from 0 to 1: 0.95 for what 95 of 100 did not exceed. Within a class of latency
// it is taken to grow evenly; of the last class only the least time is known.
func (c *Counts) Quantile(q float64) time.Duration {
	if c.Requests == 0 {
		return 0
	}
	bounds := Bounds()
	rank := q * float64(c.Requests)
	below := 0.0
	for i, n := range c.Latency {
		if i == len(bounds) {
			break
		}
		if count := float64(n); n > 0 && below+count >= rank {
			least := time.Duration(0)
			if i > 0 {
				least = bounds[i-1]
			}
			return least + time.Duration(max(0, rank-below)/count*float64(bounds[i]-least))
		}
		below += float64(n)
	}
	return bounds[len(bounds)-1]
}
