package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// overviewPage is the data of the template overview.
type overviewPage struct {
	Days     int
	Keys     int    // usable ones
	Networks string // their number
	Sum      figures
	Limits   []limitLine
	More     int // keys that Limits does not list
	Costs    string
	Pictures []picture
}

// limitLine is the limits of a key, or of all keys together.
type limitLine struct {
	Name, Path string
	allowance
}

// shownLimits is how many keys the overview lists with their limits.
const shownLimits = 5

// figures are the totals above the charts.
type figures struct {
	Calls  uint64
	Today  uint64
	Failed uint64
	Share  string // of failed calls, in per cent
	Mean   string // mean time of a call
	Most   string // 95th percentile of the time of a call
}

// overviewDays is the number of days that the overview shows, including today.
const overviewDays = 14

// overview is the first page of a signed-in user.
func (v *visit) overview() error {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return err
	}
	now := time.Now()
	first := day(now).AddDate(0, 0, 1-overviewDays)
	lines, err := v.usageOf(keys, first, now)
	if err != nil {
		return err
	}
	p := overviewPage{Days: overviewDays, Networks: amount(uint64(len(networks)), "network"), Sum: figuresOf(lines, now), Pictures: overviewPictures(lines, first)}
	p.Keys, p.Costs = usable(keys, now), costRange(networks)
	if p.Limits, err = v.limitLines(keys, now); err != nil {
		return err
	}
	if p.More = p.Keys - (len(p.Limits) - 1); p.More < 0 {
		p.More = 0
	}
	return v.show(200, "overview", "Overview", p)
}

// limitLines returns the limits of all keys together, and of those keys that are nearest to
// theirs.
func (v *visit) limitLines(keys []account.Key, now time.Time) ([]limitLine, error) {
	spent, err := v.spentToday(v.who.ID, keys)
	if err != nil {
		return nil, err
	}
	together, err := v.togetherAllowance(spent)
	if err != nil {
		return nil, err
	}
	var each []limitLine
	for _, k := range keys {
		if !k.Ended(now) && k.Unreadable == "" {
			each = append(each, limitLine{keyName(&k), "/keys/" + k.ID.String(), newAllowance(v.dashboard.config.Allowance(&k), spent[k.ID], now)})
		}
	}
	slices.SortStableFunc(each, func(a, b limitLine) int { return cmp.Compare(b.Today.Share, a.Today.Share) })
	return append([]limitLine{{"All keys together", "/account", together}}, each[:min(len(each), shownLimits)]...), nil
}

func figuresOf(lines []usage.Line, now time.Time) figures {
	var all tally
	var f figures
	for _, l := range lines {
		all.Add(l.Counts)
		if l.Time.Equal(day(now)) {
			f.Today += l.Requests
		}
	}
	f.Calls, f.Failed, f.Share = all.Requests, all.Errors, share(all.Errors, all.Requests)
	f.Mean, f.Most = all.Mean(), all.Most()
	return f
}

// overviewPictures draws the usage of overviewDays days.
func overviewPictures(lines []usage.Line, first time.Time) []picture {
	b := spread(lines, first, overviewDays, func(l usage.Line) string { return l.Network })
	return []picture{
		b.bars("calls", "Calls a day, by network", requestsOf),
		b.bars("failed", "Failed calls a day, by network", errorsOf),
		b.lines("time", "Mean latency, by network"),
	}
}

func (b *byDay) bars(id, title string, value func(*tally) float64) picture {
	c := b.chart(id, title, chart.Count, value)
	return picture{c, c.Bars(), "Day"}
}

func (b *byDay) lines(id, title string) picture {
	c := b.chart(id, title, chart.Milliseconds, meanOf)
	return picture{c, c.Lines(), "Day"}
}

// share formats a part of a whole in per cent.
func share(part, whole uint64) string {
	if whole == 0 || part == 0 {
		return "0 %"
	}
	percent := 100 * float64(part) / float64(whole)
	if percent < .1 {
		return "< 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", percent)
}
