package dashboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// tally is a sum of usage.
type tally struct {
	Name string
	usage.Counts
}

// Mean formats the mean time of a call.
func (t *tally) Mean() string { return t.took(t.Counts.Mean()) }

// Most formats the 95th percentile of the time of a call.
func (t *tally) Most() string { return t.took(t.Quantile(.95)) }

func (t *tally) took(d time.Duration) string {
	if t.Requests == 0 {
		return chart.Milliseconds.Exact(math.NaN())
	}
	return chart.Milliseconds.Exact(milliseconds(d))
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

// picture is a chart with its SVG.
type picture struct {
	Chart chart.Chart
	SVG   any    // template.HTML
	Axis  string // what the positions are, such as days
}

// byDay is usage of consecutive days, split into series.
type byDay struct {
	first  time.Time
	days   int
	names  []string
	sums   [][]tally // by series and day
	labels []string
}

// maxSeries is the most series in a chart; smaller ones are combined.
const (
	maxSeries = 5
	others    = "others"
)

// spread sums usage into days from first on and into series by name.
func spread(all []usage.Line, first time.Time, days int, name func(usage.Line) string) *byDay {
	b := &byDay{first: first, days: days}
	place := make(map[string]int)
	for _, t := range tallies(all, name) {
		if len(b.names) == maxSeries {
			b.names = append(b.names, others)
			break
		}
		place[t.Name] = len(b.names)
		b.names = append(b.names, t.Name)
	}
	b.sums = make([][]tally, len(b.names))
	for i := range b.sums {
		b.sums[i] = make([]tally, days)
	}
	for _, u := range all {
		day := int(u.Time.Sub(first).Hours() / 24)
		series, ok := place[name(u)]
		if !ok {
			series = maxSeries
		}
		if day >= 0 && day < days {
			b.sums[series][day].Add(u.Counts)
		}
	}
	for day := range days {
		b.labels = append(b.labels, first.AddDate(0, 0, day).Format("2 Jan"))
	}
	return b
}

// chart builds a chart with one value per series and day.
func (b *byDay) chart(id, title string, unit chart.Unit, value func(*tally) float64) chart.Chart {
	c := chart.Chart{ID: id, Title: title, Unit: unit, Labels: b.labels}
	for i, name := range b.names {
		s := chart.Series{Name: name}
		for day := range b.days {
			s.Values = append(s.Values, value(&b.sums[i][day]))
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func requestsOf(t *tally) float64 { return float64(t.Requests) }
func errorsOf(t *tally) float64   { return float64(t.Errors) }

// meanOf returns the mean time of a call, or NaN if there were none.
func meanOf(t *tally) float64 {
	if t.Requests == 0 {
		return math.NaN()
	}
	return milliseconds(t.Counts.Mean())
}

// day returns the start of a day in UTC.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
