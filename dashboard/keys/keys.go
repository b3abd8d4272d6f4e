// Package keys serves the pages that manage the keys of an account, and describes what keys may
// spend.
package keys

import (
	"cmp"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAccount("GET /keys", account.TeamViewer, list),
		site.ForAccount("GET /keys/new", account.TeamMember, showNew),
		site.ForAccount("POST /keys/new", account.TeamMember, create),
		site.ForAccount("GET /keys/{key}", account.TeamViewer, show),
		site.ForAccount("POST /keys/{key}", account.TeamMember, change),
		site.ForAccount("GET /keys/{key}/rotate", account.TeamMember, showRotation),
		site.ForAccount("POST /keys/{key}/rotate", account.TeamMember, rotate),
		site.ForAccount("GET /keys/{key}/revoke", account.TeamMember, showRevocation),
		site.ForAccount("POST /keys/{key}/revoke", account.TeamMember, revoke),
	}
}

// keysPage is the data of the template keys.
type keysPage struct {
	Live     []Line
	Ended    []Line // the newest shownEnded
	All      int    // number of keys that have ended
	Together Allowance
	Costs    string
}

// shownEnded is how many keys that have ended are listed. An account keeps every key that it ever had.
const shownEnded = 500

// Line is a key in a list.
type Line struct {
	Key   account.Key
	Name  string
	State string // why it cannot be used, or will expire soon; else empty
	Rules string // what it is restricted to; empty if it is not
	Used  time.Time
	Allowance
}

// Usable returns how many keys have not ended.
func Usable(keys []account.Key, now time.Time) (n int) {
	for _, k := range keys {
		if !k.Ended(now) {
			n++
		}
	}
	return n
}

// Own returns the keys of the account that the page is about.
func Own(v *site.Visit) *account.Keyring { return v.Config.Keys.Of(v.Account.ID) }

func list(v *site.Visit) error {
	keys, err := Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	spent, err := SpentToday(v, v.Account.ID, keys)
	if err != nil {
		return err
	}
	now := time.Now()
	live, ended := Divide(keys, now)
	lines, err := Lines(v, live, spent)
	if err != nil {
		return err
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	p := keysPage{Live: lines, All: len(keys) - len(live), Costs: site.CostRange(networks)}
	if p.Together, err = TogetherAllowance(v, spent); err != nil {
		return err
	}
	for _, k := range slices.Backward(ended) {
		p.Ended = append(p.Ended, Line{Key: k, Name: Name(&k), State: state(&k, now)})
	}
	return v.Show(200, "keys", "Keys", p)
}

// Divide divides keys, oldest first, into those that can be used and the newest shownEnded of those that have
// ended.
func Divide(keys []account.Key, now time.Time) (live, ended []account.Key) {
	for _, k := range keys {
		if k.Ended(now) {
			ended = append(ended, k)
		} else {
			live = append(live, k)
		}
	}
	return live, ended[max(0, len(ended)-shownEnded):]
}

// Lines describes keys, newest first. spent is the credits spent today.
func Lines(v *site.Visit, keys []account.Key, spent map[account.KeyID]uint64) (all []Line, err error) {
	now := time.Now()
	for _, k := range slices.Backward(keys) {
		used, err := v.Config.Usage.LastUsed(v.R.Context(), k.ID)
		if err != nil {
			return nil, err
		}
		line := Line{Key: k, Name: Name(&k), State: state(&k, now), Rules: rulesInWords(k.Rules), Used: used}
		if k.Unreadable == "" && !k.Ended(now) {
			line.Allowance = NewAllowance(v.Config.Allowance(&k), spent[k.ID], now)
		}
		all = append(all, line)
	}
	return all, nil
}

func Name(k *account.Key) string { return cmp.Or(k.Name, "Key "+k.ID.String()) }

// soon is how long before its expiry a key is marked.
const soon = 7 * 24 * time.Hour

// state describes a key that is revoked, expired or about to expire; empty for
// any other.
func state(k *account.Key, now time.Time) string {
	switch {
	case k.Unreadable != "":
		return "cannot be read, disabled"
	case k.Unsaved && !k.Live():
		return "revoked, not yet durable"
	case !k.Live():
		return "revoked " + site.Date(k.Revoked)
	case k.Ended(now):
		return "expired " + site.Date(k.Expires)
	case !k.Expires.IsZero() && k.Expires.Sub(now) < soon:
		return "expires " + site.Date(k.Expires)
	}
	return ""
}

// IDs returns the IDs of those keys that can have usage since a time, and that of the session of their
// owner, which stands for a key.
func IDs(owner account.ID, keys []account.Key, since time.Time) []account.KeyID {
	since = since.AddDate(0, 0, -1) // a process that was paused counts late
	ids := []account.KeyID{account.KeyID(owner)}
	for _, k := range keys {
		if !endedBefore(k.Revoked, since) && !endedBefore(k.Expires, since) {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// endedBefore reports whether a key that ends at a time, zero if it does not, had ended before another.
func endedBefore(end, at time.Time) bool { return !end.IsZero() && end.Before(at) }
