package activity

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"ashlar/account/usage"
)

// If there are many networks or methods, the largest have a series each and the others
// share one.
func TestStackPutsLittleTogether(t *testing.T) {
	now := time.Date(2026, 5, 8, 13, 0, 0, 0, time.UTC)
	line := newTimeline(readSpan(nil, "7"), now)
	first := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	var all []usage.Line
	for i := range 8 {
		all = append(all, usage.Line{Time: first.AddDate(0, 0, i%2), Network: string(rune('a' + i)), Counts: usage.Counts{Requests: uint64(10 * (i + 1))}})
	}
	all = append(all, usage.Line{Time: first.AddDate(0, 0, -1), Network: "a", Counts: usage.Counts{Requests: 1}}) // before the first day
	c := line.byNetwork(all).Chart
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "h g f e d others" || c.Labels[0] != "2 May" || c.Labels[6] != "8 May" {
		t.Errorf("series %s, from %s to %s", got, c.Labels[0], c.Labels[6])
	}
	if others := c.Series[maxSeries].Values; others[0] != 10+30 || others[1] != 20 {
		t.Errorf("others %+v", others)
	}
}

// Each span has its number of steps, the last of which is the current one.
func TestSpans(t *testing.T) {
	now := time.Date(2026, 5, 8, 13, 45, 30, 0, time.UTC)
	for value, want := range map[string]string{
		"hour": "60 minutes from 12:46 to 13:45", "day": "24 hours from 14:00 to 13:00",
		"7": "7 days from 2 May to 8 May", "30": "30 days from 9 Apr to 8 May", "90": "90 days from 8 Feb to 8 May",
		"nonsense": "24 hours from 14:00 to 13:00",
	} {
		line := newTimeline(readSpan(url.Values{"time": {value}}, spanDay), now)
		if got := fmt.Sprintf("%d %ss from %s to %s", line.steps, line.Each, line.labels[0], line.labels[line.steps-1]); got != want {
			t.Errorf("%s: %s, expected %s", value, got, want)
		}
		if step, ok := line.at(now); !ok || step != line.steps-1 {
			t.Errorf("%s: now is in step %d, %v", value, step, ok)
		}
	}
}

func TestPerSecond(t *testing.T) {
	if got := perSecond(1, 300) + " " + perSecond(0, 300) + " " + perSecond(900, 300) + " " + perSecond(600_000, 300); got != "< 0.1 0 3.0 2,000" {
		t.Errorf("rates %s", got)
	}
}
