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
	Errors   uint64          `json:"errors"` // requests answered with an error, including refused ones
	Credits  uint64          `json:"credits"`
	Time     time.Duration   `json:"time"`    // total
	Bytes    uint64          `json:"bytes"`   // of results and of messages of subscriptions, before compression
	Latency  [Buckets]uint64 `json:"latency"` // number of requests by bucket

	// Refused and Codes split Errors; usage counted by earlier versions has neither. They are
	// nil if they are empty.
	Refused map[Cause]uint64 `json:"refused,omitempty"`
	Codes   map[int]uint64   `json:"codes,omitempty"` // errors by code, of requests that were not refused
}

// maxCodes is how many error codes are counted separately; the rest are counted as code 0.
const maxCodes = 64

func (c *Counts) refuse(cause Cause, n uint64) {
	if n == 0 {
		return
	}
	if c.Refused == nil {
		c.Refused = make(map[Cause]uint64, 1)
	}
	c.Refused[cause] += n
}

func (c *Counts) fail(code int, n uint64) {
	if n == 0 {
		return
	}
	if c.Codes == nil {
		c.Codes = make(map[int]uint64, 1)
	}
	if _, known := c.Codes[code]; !known {
		separate := len(c.Codes)
		if _, others := c.Codes[0]; others {
			separate--
		}
		if separate >= maxCodes {
			code = 0
		}
	}
	c.Codes[code] += n
}

// Add adds more to c.
func (c *Counts) Add(more Counts) {
	c.Requests += more.Requests
	c.Errors += more.Errors
	c.Credits += more.Credits
	c.Time += more.Time
	c.Bytes += more.Bytes
	for i, n := range more.Latency {
		c.Latency[i] += n
	}
	for cause, n := range more.Refused {
		c.refuse(cause, n)
	}
	for code, n := range more.Codes {
		c.fail(code, n)
	}
}

// zero reports whether nothing is counted.
func (c *Counts) zero() bool {
	return c.Requests == 0 && c.Errors == 0 && c.Credits == 0 && c.Time == 0 && c.Bytes == 0
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
