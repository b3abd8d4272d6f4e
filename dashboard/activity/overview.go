package activity

import (
	"cmp"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// overviewPage is the data of the template overview.
type overviewPage struct {
	Keys     int  // usable ones
	New      bool // no call was ever made
	Live     live
	Limits   []limitLine
	More     int    // keys that Limits does not list
	Resets   string // time until the use of daily limits is zero again
	Costs    string
	Tabs     []tab
	Span     span
	Sum      tally
	Failing  failing
	Pictures []picture
}

// limitLine is the limits of a key, or of all keys together.
type limitLine struct {
	Name, Path string
	keys.Allowance
}

// shownLimits is how many keys the overview lists with their limits.
const shownLimits = 5

// Overview is the first page of a signed-in user, and of a team.
func Overview(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	now := time.Now()
	p := overviewPage{Keys: keys.Usable(own, now), Costs: site.CostRange(networks), Resets: keys.UntilMidnight(now), Span: readSpan(v.R.URL.Query(), spanDay)}
	p.Tabs = tabs(v, p.Span)
	live, ended := keys.Divide(own, now)
	if p.New, err = isNew(v, keys.IDs(v.Account.ID, append(live, ended...), time.Time{})); err != nil {
		return err
	}
	if p.Limits, err = limitLines(v, own, now); err != nil {
		return err
	}
	p.More = max(0, p.Keys-(len(p.Limits)-1))
	if p.New {
		return v.Show(200, "overview", "Overview", &p)
	}
	if p.Live, err = readLive(v, usage.Query{Keys: keys.IDs(v.Account.ID, own, now)}); err != nil {
		return err
	}
	t := newTimeline(p.Span, now)
	lines, err := v.Config.Usage.Read(v.R.Context(), usage.Query{Keys: keys.IDs(v.Account.ID, own, t.from), From: t.from, To: now, By: t.by | usage.ByKey | usage.ByNetwork})
	if err != nil {
		return err
	}
	for _, l := range lines {
		p.Sum.Add(l.Counts)
	}
	p.Failing = newFailing(v, t, lines, onlyKey(lines))
	p.Pictures = []picture{t.outcomes(lines), t.latency(lines)}
	return v.Show(200, "overview", "Overview", &p) // the template calls methods of pointers
}

// isNew reports whether no call was made yet with any of some keys.
func isNew(v *site.Visit, ids []account.KeyID) (bool, error) {
	for _, id := range ids {
		used, err := v.Config.Usage.LastUsed(v.R.Context(), id)
		if err != nil || !used.IsZero() {
			return false, err
		}
	}
	return true, nil
}

// limitLines returns the limits of all keys together, and of those keys that are nearest to
// theirs.
func limitLines(v *site.Visit, own []account.Key, now time.Time) ([]limitLine, error) {
	spent, err := keys.SpentToday(v, v.Account.ID, own)
	if err != nil {
		return nil, err
	}
	together, err := keys.TogetherAllowance(v, spent)
	if err != nil {
		return nil, err
	}
	var each []limitLine
	for _, k := range own {
		if !k.Ended(now) && k.Unreadable == "" {
			each = append(each, limitLine{keys.Name(&k), v.Path("/keys/" + k.ID.String()), keys.NewAllowance(v.Config.Allowance(&k), spent[k.ID], now)})
		}
	}
	slices.SortStableFunc(each, func(a, b limitLine) int { return cmp.Compare(b.Today.Share, a.Today.Share) })
	all := "/account"
	if v.Account.IsTeam() {
		all = v.Path("/keys")
	}
	return append([]limitLine{{"All keys together", all, together}}, each[:min(len(each), shownLimits)]...), nil
}
