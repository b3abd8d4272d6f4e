package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
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
	allowance
}

// shownLimits is how many keys the overview lists with their limits.
const shownLimits = 5

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
	p := overviewPage{Keys: usable(keys, now), Costs: costRange(networks), Resets: untilMidnight(now), Span: readSpan(v.r.URL.Query(), spanDay)}
	p.Tabs = v.tabs(p.Span)
	ids := keyIDs(v.who.ID, keys)
	if p.New, err = v.isNew(ids); err != nil {
		return err
	}
	if p.Limits, err = v.limitLines(keys, now); err != nil {
		return err
	}
	p.More = max(0, p.Keys-(len(p.Limits)-1))
	if p.New {
		return v.show(200, "overview", "Overview", &p)
	}
	if p.Live, err = v.readLive(usage.Query{Keys: ids}); err != nil {
		return err
	}
	t := newTimeline(p.Span, now)
	lines, err := v.dashboard.config.Usage.Read(v.r.Context(), usage.Query{Keys: ids, From: t.from, To: now, By: t.by | usage.ByKey | usage.ByNetwork})
	if err != nil {
		return err
	}
	for _, l := range lines {
		p.Sum.Add(l.Counts)
	}
	p.Failing = newFailing(t, lines, onlyKey(lines))
	p.Pictures = []picture{t.outcomes(lines), t.latency(lines)}
	return v.show(200, "overview", "Overview", &p) // the template calls methods of pointers
}

// isNew reports whether no call was made yet with any of some keys.
func (v *visit) isNew(ids []account.KeyID) (bool, error) {
	for _, id := range ids {
		used, err := v.dashboard.config.Usage.LastUsed(v.r.Context(), id)
		if err != nil || !used.IsZero() {
			return false, err
		}
	}
	return true, nil
}

// keyIDs returns the IDs of keys, and that of the session of their owner, which stands for a
// key.
func keyIDs(owner account.ID, keys []account.Key) []account.KeyID {
	ids := []account.KeyID{account.KeyID(owner)}
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	return ids
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
