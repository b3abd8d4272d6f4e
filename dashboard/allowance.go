package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// allowance shows what a key, or all keys of an account, may spend: the limits that are
// reached first, with their use.
type allowance struct {
	Today  gauge
	Rate   gauge
	Others []string // the other limits that apply
}

// gauge shows one limit. Without a limit, Most is empty.
type gauge struct {
	Used   string
	Most   string
	Share  float64 // used, in per cent of the limit, at most 100
	Mood   string  // CSS class
	Source string  // where the limit is set
	Resets string  // when the use is zero again; empty if it is not counted by day
}

// nearLimit is the use of a limit, in per cent, from which its gauge is marked.
const nearLimit = 80

func newGauge(b account.Bound) gauge {
	g := gauge{Used: credits(b.Used), Most: credits(b.Credits), Share: 100 * min(1, b.Used/b.Credits), Source: sourceInWords(b.Source)}
	switch {
	case g.Share >= 100:
		g.Mood = "bad"
	case g.Share >= nearLimit:
		g.Mood = "warn"
	}
	return g
}

// credits formats credits, which may be a fraction in a rate.
func credits(n float64) string {
	if n < 10 && n != math.Trunc(n) {
		return fmt.Sprintf("%.1f", n)
	}
	return chart.Grouped(n)
}

// newAllowance describes limits. spent is what was spent today, for when no daily limit
// applies.
func newAllowance(a account.Allowance, spent uint64, now time.Time) (shown allowance) {
	shown.Today.Used = count(spent)
	quota, limited := a.Quota()
	if limited {
		shown.Today = newGauge(quota)
		shown.Today.Resets = "resets at 00:00 UTC, in " + untilMidnight(now)
	}
	rate, rated := a.Rate()
	if rated {
		shown.Rate = newGauge(rate)
	}
	for _, b := range a.PerDay {
		if b != quota {
			shown.Others = append(shown.Others, fmt.Sprintf("%s of %s credits today, %s", credits(b.Used), credits(b.Credits), sourceInWords(b.Source)))
		}
	}
	for _, b := range a.PerSecond {
		if b != rate {
			shown.Others = append(shown.Others, fmt.Sprintf("%s credits a second, %s", credits(b.Credits), sourceInWords(b.Source)))
		}
	}
	return shown
}

func sourceInWords(s account.LimitSource) string {
	switch s {
	case account.KeyRule:
		return "set in the key’s rules"
	case account.AccountLimit:
		return "set by an operator for all keys of the account together"
	case account.AccountDefault:
		return "set by the service for all keys of an account together"
	case account.AddressDefault:
		return "set by the service for each client address"
	}
	return "set by the service for each key"
}

// untilMidnight formats the time until the next day in UTC.
func untilMidnight(now time.Time) string {
	left := day(now).AddDate(0, 0, 1).Sub(now).Truncate(time.Minute)
	if left < time.Hour {
		return fmt.Sprintf("%d min", int(left.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(left.Hours()), int(left.Minutes())%60)
}

// spentToday returns the credits spent today by key, including those of the session of an
// account, whose ID stands for a key.
func (v *visit) spentToday(owner account.ID, keys []account.Key) (map[account.KeyID]uint64, error) {
	now := time.Now()
	lines, err := v.dashboard.config.Usage.Read(v.r.Context(), usage.Query{From: day(now), To: now, By: usage.ByKey, Keys: keyIDs(owner, keys)})
	if err != nil {
		return nil, err
	}
	spent := make(map[account.KeyID]uint64)
	for _, l := range lines {
		spent[l.Key] += l.Credits
	}
	return spent, nil
}

// togetherAllowance returns what all keys of the visitor's account may spend together.
func (v *visit) togetherAllowance(spent map[account.KeyID]uint64) (allowance, error) {
	session, err := v.dashboard.config.Keys.Session(v.who.ID)
	if err != nil {
		return allowance{}, err
	}
	a := v.dashboard.config.Allowance(session)
	ofKey := func(b account.Bound) bool {
		return b.Source != account.AccountLimit && b.Source != account.AccountDefault
	}
	a.PerSecond, a.PerDay = slices.DeleteFunc(a.PerSecond, ofKey), slices.DeleteFunc(a.PerDay, ofKey)
	var sum uint64
	for _, n := range spent {
		sum += n
	}
	return newAllowance(a, sum, time.Now()), nil
}

// costRange says what calls cost, such as "from 1 to 50 credits".
func costRange(networks []Network) string {
	all := prices(networks)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return amount(uint64(all[0].Credits), "credit")
	}
	return fmt.Sprintf("from %d to %s", all[0].Credits, amount(uint64(all[len(all)-1].Credits), "credit"))
}

// price is the methods that cost the same.
type price struct {
	Credits int
	Methods []string
}

// prices returns what the methods of all networks cost, the cheapest first.
func prices(networks []Network) []price {
	byCredits := make(map[int][]string)
	for _, n := range networks {
		for _, m := range n.Methods {
			if !slices.Contains(byCredits[m.Credits], m.Name) {
				byCredits[m.Credits] = append(byCredits[m.Credits], m.Name)
			}
		}
	}
	var all []price
	for n, methods := range byCredits {
		slices.SortFunc(methods, strings.Compare)
		all = append(all, price{n, methods})
	}
	slices.SortFunc(all, func(a, b price) int { return cmp.Compare(a.Credits, b.Credits) })
	return all
}
