package activity

import (
	"context"
	"sync"
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

const (
	// statusDays is the number of days that the status page shows, including today.
	statusDays = 90
	// statusAge is how old the numbers of the status page may become. Anybody can load it,
	// so it must cost little.
	statusAge = 30 * time.Second
)

// statusPage is the data of the template status.
type statusPage struct {
	Days     int
	Networks []networkStatus
	At       time.Time
}

// networkStatus is the public status of a network.
type networkStatus struct {
	Name       string
	Unreadable bool // its state; Head and HeadTime are not known
	State      string
	Mood       string // CSS class of the badge
	Head       uint64
	HeadTime   time.Time
	Today      tally // since 00:00 UTC
	Share      string
	Strip      []dayStatus // oldest first
}

// dayStatus is the share of calls of a day that were answered with an error.
type dayStatus struct {
	X     int // position in the strip
	Date  string
	Share string // empty: there were no calls
	Mood  string // CSS class
}

// statusCache holds the page for statusAge.
type statusCache struct {
	mu   sync.Mutex // held while the page is made, so that it is made once
	made *statusPage
}

// serve shows everybody how the networks are, if the configuration allows it.
func (c *statusCache) serve(v *site.Visit) error {
	if !v.Config.Status() {
		return site.ErrNoPage
	}
	p, err := c.current(v.R.Context(), v.Config)
	if err != nil {
		return err
	}
	return v.Show(200, "status", "Status", p)
}

// current returns the status page's data, which the caller must not change.
func (c *statusCache) current(ctx context.Context, config *site.Config) (*statusPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.made != nil && now.Sub(c.made.At) < statusAge {
		return c.made, nil
	}
	networks, err := config.Networks(ctx)
	if err != nil {
		return nil, err
	}
	first := site.Day(now).AddDate(0, 0, 1-statusDays)
	lines, err := config.Usage.Read(ctx, usage.Query{All: true, From: first, To: now, By: usage.ByDay | usage.ByNetwork})
	if err != nil {
		return nil, err
	}
	p := &statusPage{Days: statusDays, At: now}
	for _, n := range networks {
		s := statusOfNetwork(&n, lines, first)
		s.State, s.Mood = n.State()
		p.Networks = append(p.Networks, s)
	}
	for _, u := range config.Unserved(ctx) {
		if u.Missed {
			s := statusOfNetwork(&site.Network{Name: u.Name}, lines, first)
			s.Unreadable, s.State, s.Mood = true, "not served", "bad"
			p.Networks = append(p.Networks, s)
		}
	}
	c.made = p
	return p, nil
}

// statusOfNetwork describes a network but for its state, given usage by day from first on.
func statusOfNetwork(n *site.Network, lines []usage.Line, first time.Time) networkStatus {
	s := networkStatus{Name: n.Name, Unreadable: n.Unreadable != "", Head: n.Head, HeadTime: n.HeadTime}
	days := make([]tally, statusDays)
	var all tally
	for _, l := range lines {
		if i := int(l.Time.Sub(first).Hours() / 24); l.Network == n.Name && i >= 0 && i < statusDays {
			days[i].Add(l.Counts)
			all.Add(l.Counts)
		}
	}
	s.Today, s.Share = days[statusDays-1], "–"
	if all.Requests > 0 {
		s.Share = site.Share(all.Errors, all.Requests)
	}
	for i := range days {
		s.Strip = append(s.Strip, statusOfDay(i, first.AddDate(0, 0, i), &days[i]))
	}
	return s
}

// Shares of errors in per cent from which a day is marked.
const (
	warnShare = 5
	badShare  = 25
)

func statusOfDay(i int, at time.Time, t *tally) dayStatus {
	d := dayStatus{X: 10 * i, Date: at.Format("2 Jan 2006"), Mood: "none"}
	if t.Requests == 0 {
		return d
	}
	d.Share, d.Mood = site.Share(t.Errors, t.Requests), "good"
	switch percent := 100 * t.Errors / t.Requests; {
	case percent >= badShare:
		d.Mood = "bad"
	case percent >= warnShare:
		d.Mood = "warn"
	}
	return d
}
