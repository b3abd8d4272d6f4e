package activity

import (
	"net/url"
	"slices"
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

// span is a period that ends now, in equal steps.
type span struct {
	Value  string // in URLs
	Text   string
	Each   string // name of a step
	step   time.Duration
	steps  int
	by     usage.Group
	layout string // of the time of a step
}

// The values of spans that are shown unless another one is chosen.
const (
	spanDay   = "day"
	spanMonth = "30"
)

// spans lists the periods to choose from.
func spans() []span {
	const aDay = 24 * time.Hour
	return []span{
		{"hour", "last hour", "minute", time.Minute, 60, usage.ByMinute, "15:04"},
		{spanDay, "last 24 hours", "hour", time.Hour, 24, usage.ByHour, "15:04"},
		{"7", "7 days", "day", aDay, 7, usage.ByDay, "2 Jan"},
		{spanMonth, "30 days", "day", aDay, 30, usage.ByDay, "2 Jan"},
		{"90", "90 days", "day", aDay, 90, usage.ByDay, "2 Jan"},
	}
}

// readSpan returns the span that a query asks for, or the standard one.
func readSpan(query url.Values, standard string) span {
	all := spans()
	for _, value := range []string{query.Get("time"), standard} {
		if i := slices.IndexFunc(all, func(s span) bool { return s.Value == value }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// First returns the start of the span's first step.
func (s *span) First(now time.Time) time.Time {
	return now.UTC().Truncate(s.step).Add(-time.Duration(s.steps-1) * s.step)
}

// tab is a link to the same page with another span.
type tab struct {
	Text, Path string
	Here       bool
}

// tabs returns the links to all spans. Other choices of the query stay.
func tabs(v *site.Visit, chosen span) (all []tab) {
	query := v.R.URL.Query()
	for _, s := range spans() {
		query.Set("time", s.Value)
		all = append(all, tab{site.Capital(s.Text), v.R.URL.Path + "?" + query.Encode(), s.Value == chosen.Value})
	}
	return all
}

// timeline is the steps of a span.
type timeline struct {
	span
	from   time.Time // start of the first step
	labels []string
}

func newTimeline(s span, now time.Time) *timeline {
	t := &timeline{span: s, from: s.First(now)}
	for i := range s.steps {
		t.labels = append(t.labels, t.from.Add(time.Duration(i)*s.step).Format(s.layout))
	}
	return t
}

// at returns the step of a time, or false if it is in none.
func (t *timeline) at(when time.Time) (step int, ok bool) {
	step = int(when.Sub(t.from) / t.step)
	return step, !when.Before(t.from) && step < t.steps
}

// sums adds usage up by step.
func (t *timeline) sums(all []usage.Line) []tally {
	sums := make([]tally, t.steps)
	for _, u := range all {
		if step, ok := t.at(u.Time); ok {
			sums[step].Add(u.Counts)
		}
	}
	return sums
}
