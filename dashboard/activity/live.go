package activity

import (
	"fmt"
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// live is the usage of the last minutes.
type live struct {
	Minutes int
	Rate    string // calls a second
	Credits string // a second
	tally
}

// liveMinutes is how many minutes the live numbers include, with the current one.
const liveMinutes = 5

// readLive reads the live numbers of some keys.
func readLive(v *site.Visit, q usage.Query) (live, error) {
	now := time.Now()
	q.From, q.To, q.By = now.Truncate(time.Minute).Add(-(liveMinutes-1)*time.Minute), now, usage.ByMinute
	lines, err := v.Config.Usage.Read(v.R.Context(), q)
	l := live{Minutes: liveMinutes}
	for _, one := range lines {
		l.Add(one.Counts)
	}
	seconds := now.Sub(q.From).Seconds()
	l.Rate, l.Credits = perSecond(l.Requests, seconds), perSecond(l.Counts.Credits, seconds)
	return l, err
}

// perSecond formats a rate.
func perSecond(n uint64, seconds float64) string {
	rate := float64(n) / seconds
	switch {
	case n == 0:
		return "0"
	case rate < .1:
		return "< 0.1"
	case rate < 10:
		return fmt.Sprintf("%.1f", rate)
	}
	return site.Credits(rate)
}

// live serves the live numbers alone, for the script of the overview.
func showLive(v *site.Visit) error {
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	l, err := readLive(v, usage.Query{Keys: keys.IDs(v.Account.ID, own, time.Now())})
	if err != nil {
		return err
	}
	return v.ShowPart("overview", "live", &l)
}
