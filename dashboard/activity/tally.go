package activity

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/chart"
	"ashlar/dashboard/site"
)

// tally is a sum of usage.
type tally struct {
	Name   string
	Path   string // of what it is about; may be empty
	Failed string // path of its failed requests; may be empty
	usage.Counts
}

// Mean formats the mean time of a call.
func (t *tally) Mean() string { return t.took(t.Counts.Mean()) }

// P50, P95 and P99 format percentiles of the time of a call.
func (t *tally) P50() string { return t.took(t.Quantile(.50)) }
func (t *tally) P95() string { return t.took(t.Quantile(.95)) }
func (t *tally) P99() string { return t.took(t.Quantile(.99)) }

// Share formats how many calls failed, in per cent.
func (t *tally) Share() string { return site.Share(t.Errors, t.Requests) }

// Size formats the bytes of results.
func (t *tally) Size() string { return chart.Bytes.Exact(float64(t.Bytes)) }

func (t *tally) took(d time.Duration) string {
	if t.Requests == 0 {
		return chart.Milliseconds.Exact(math.NaN())
	}
	return chart.Milliseconds.Exact(milliseconds(d))
}

// refused returns how many calls were refused; the others that failed have an error of their
// own.
func (t *tally) refused() (n uint64) {
	for _, count := range t.Refused {
		n += count
	}
	return n
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tallies sums usage by name, most calls first.
func tallies(all []usage.Line, name func(usage.Line) string) []*tally {
	byName := make(map[string]*tally)
	for _, u := range all {
		of := name(u)
		if byName[of] == nil {
			byName[of] = &tally{Name: of}
		}
		byName[of].Add(u.Counts)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
}
