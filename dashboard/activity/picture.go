package activity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// picture is a chart with its SVG.
type picture struct {
	Chart chart.Chart
	SVG   any    // template.HTML
	Axis  string // what the positions are, such as day
}

// maxSeries is the most series in a chart; smaller ones are combined.
const (
	maxSeries = 5
	others    = "others"
)

// bars draws one or more series as stacked bars.
func (t *timeline) bars(c chart.Chart) picture {
	c.Labels = t.labels
	return picture{c, c.Bars(), t.Each}
}

// outcomes charts calls that succeeded, were refused and failed.
func (t *timeline) outcomes(used []usage.Line) picture {
	answered, refused, failed := make([]float64, t.steps), make([]float64, t.steps), make([]float64, t.steps)
	for i, sum := range t.sums(used) {
		answered[i] = float64(sum.Requests - min(sum.Requests, sum.Errors))
		refused[i] = float64(sum.refused())
		failed[i] = float64(sum.Errors - min(sum.Errors, sum.refused()))
	}
	return t.bars(chart.Chart{ID: "calls", Title: "Calls per " + t.Each, Series: []chart.Series{
		{Name: "answered", Values: answered}, {Name: "refused", Kind: chart.Warn, Values: refused}, {Name: "failed", Kind: chart.Bad, Values: failed},
	}})
}

// latency charts percentiles of the time of a call.
func (t *timeline) latency(used []usage.Line) picture {
	c := chart.Chart{ID: "latency", Title: "Latency, logarithmic", Unit: chart.Milliseconds, Labels: t.labels}
	sums := t.sums(used)
	for _, p := range []struct {
		name string
		q    float64
	}{{"p50", .50}, {"p95", .95}, {"p99", .99}} {
		s := chart.Series{Name: p.name}
		for i := range sums {
			value := math.NaN()
			if sums[i].Requests > 0 {
				value = milliseconds(sums[i].Quantile(p.q))
			}
			s.Values = append(s.Values, value)
		}
		c.Series = append(c.Series, s)
	}
	return picture{c, c.Lines(), t.Each}
}

// one charts a single number of each step.
func (t *timeline) one(id, title, name string, unit chart.Unit, used []usage.Line, value func(*tally) uint64) picture {
	s := chart.Series{Name: name}
	sums := t.sums(used)
	for i := range sums {
		s.Values = append(s.Values, float64(value(&sums[i])))
	}
	return t.bars(chart.Chart{ID: id, Title: title, Narrow: true, Unit: unit, Series: []chart.Series{s}})
}

// stacked charts counts by name; the smaller ones share a series.
func (t *timeline) stacked(id, title string, narrow bool, used []usage.Line, counts func(usage.Line) map[string]uint64) picture {
	sums := make(map[string]uint64)
	for _, u := range used {
		if _, ok := t.at(u.Time); ok {
			for name, n := range counts(u) {
				sums[name] += n
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	if len(names) > maxSeries {
		names = append(names[:maxSeries], others)
	}
	c := chart.Chart{ID: id, Title: title, Narrow: narrow}
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
		c.Series = append(c.Series, chart.Series{Name: name, Values: make([]float64, t.steps)})
	}
	for _, u := range used {
		step, ok := t.at(u.Time)
		if !ok {
			continue
		}
		for name, n := range counts(u) {
			i, ok := place[name]
			if !ok {
				i = maxSeries
			}
			c.Series[i].Values[step] += float64(n)
		}
	}
	return t.bars(c)
}

// byNetwork charts calls by network.
func (t *timeline) byNetwork(used []usage.Line) picture {
	return t.stacked("networks", "Calls per "+t.Each+", by network", false, used, func(u usage.Line) map[string]uint64 {
		return map[string]uint64{u.Network: u.Requests}
	})
}
