package keys

import (
	"fmt"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

// Allowance shows what a key, or all keys of an account, may spend: the limits that are
// reached first, with their use.
type Allowance struct {
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
	g := gauge{Used: site.Credits(b.Used), Most: site.Credits(b.Credits), Share: 100 * min(1, b.Used/b.Credits), Source: sourceInWords(b.Source)}
	switch {
	case g.Share >= 100:
		g.Mood = "bad"
	case g.Share >= nearLimit:
		g.Mood = "warn"
	}
	return g
}

// NewAllowance describes limits. spent is what was spent today, for when no daily limit
// applies.
func NewAllowance(a account.Allowance, spent uint64, now time.Time) (shown Allowance) {
	shown.Today.Used = site.Count(spent)
	quota, limited := a.Quota()
	if limited {
		shown.Today = newGauge(quota)
		shown.Today.Resets = "resets at 00:00 UTC, in " + UntilMidnight(now)
	}
	rate, rated := a.Rate()
	if rated {
		shown.Rate = newGauge(rate)
	}
	for _, b := range a.PerDay {
		if b != quota {
			shown.Others = append(shown.Others, fmt.Sprintf("%s of %s today, %s", site.Credits(b.Used), site.CreditAmount(b.Credits), sourceInWords(b.Source)))
		}
	}
	for _, b := range a.PerSecond {
		if b != rate {
			shown.Others = append(shown.Others, fmt.Sprintf("%s a second, %s", site.CreditAmount(b.Credits), sourceInWords(b.Source)))
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

// UntilMidnight formats the time until the next day in UTC.
func UntilMidnight(now time.Time) string {
	left := site.Day(now).AddDate(0, 0, 1).Sub(now).Truncate(time.Minute)
	if left < time.Hour {
		return fmt.Sprintf("%d min", int(left.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(left.Hours()), int(left.Minutes())%60)
}

// SpentToday returns the credits spent today by key, including those of the session of an
// account, whose ID stands for a key.
func SpentToday(v *site.Visit, owner account.ID, keys []account.Key) (map[account.KeyID]uint64, error) {
	now := time.Now()
	lines, err := v.Config.Usage.Read(v.R.Context(), usage.Query{From: site.Day(now), To: now, By: usage.ByKey, Keys: IDs(owner, keys, site.Day(now))})
	if err != nil {
		return nil, err
	}
	spent := make(map[account.KeyID]uint64)
	for _, l := range lines {
		spent[l.Key] += l.Credits
	}
	return spent, nil
}

// TogetherAllowance returns what all keys of the account that the page is about may spend together.
func TogetherAllowance(v *site.Visit, spent map[account.KeyID]uint64) (Allowance, error) {
	session, err := v.Config.Keys.Session(v.Account.ID)
	if err != nil {
		return Allowance{}, err
	}
	a := v.Config.Allowance(session)
	ofKey := func(b account.Bound) bool {
		return b.Source != account.AccountLimit && b.Source != account.AccountDefault
	}
	a.PerSecond, a.PerDay = slices.DeleteFunc(a.PerSecond, ofKey), slices.DeleteFunc(a.PerDay, ofKey)
	var sum uint64
	for _, n := range spent {
		sum += n
	}
	return NewAllowance(a, sum, time.Now()), nil
}
