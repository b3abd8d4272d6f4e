package usage

import (
	"math"
	"time"
)

// Buckets is the number of latency buckets.
const Buckets = 11

// Bounds returns the exclusive upper bound of each bucket but the last, which has none.
func Bounds() [Buckets - 1]time.Duration {
	return [Buckets - 1]time.Duration{
		100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond,
		30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second,
	}
}

// bucketOf returns the bucket of a latency.
func bucketOf(took time.Duration) int {
	bounds := Bounds()
	for i, bound := range bounds {
		if took < bound {
			return i
		}
	}
	return len(bounds)
}

// Counts are the statistics of a set of calls.
type Counts struct {
	Requests uint64          `json:"requests"`
	Errors   uint64          `json:"errors"` // requests answered with an error, including rejected ones
	Credits  uint64          `json:"credits"`
	Time     time.Duration   `json:"time"`    // total
	Latency  [Buckets]uint64 `json:"latency"` // number of requests by bucket
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

// Mean returns the average latency, 0 without requests.
func (c *Counts) Mean() time.Duration {
	if c.Requests == 0 {
		return 0
	}
	return c.Time / time.Duration(min(c.Requests, math.MaxInt64))
}

// Quantile estimates the latency that a fraction q of the requests did not exceed; q is
// between 0 and 1. It interpolates linearly within a bucket. For the last bucket it returns
// the lower bound.
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
