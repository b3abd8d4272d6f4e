package dashboard

import (
	"cmp"
	"slices"
	"time"

	"ashlar/account"
)

// keysPage is the data of the template keys.
type keysPage struct {
	Live, Ended []keyLine
	Together    allowance // of all keys
	Costs       string
}

// keyLine is a key in a list.
type keyLine struct {
	Key   account.Key
	Name  string
	State string // why it cannot be used, or will expire soon; else empty
	Rules string // what it is restricted to; empty if it is not
	Used  time.Time
	allowance
}

// usable returns how many keys have not ended.
func usable(keys []account.Key, now time.Time) (n int) {
	for _, k := range keys {
		if !k.Ended(now) {
			n++
		}
	}
	return n
}

// own returns the keys of the visitor's account.
func (v *visit) own() *account.Keyring { return v.dashboard.config.Keys.Of(v.who.ID) }

func (v *visit) keys() error {
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return err
	}
	spent, err := v.spentToday(v.who.ID, keys)
	if err != nil {
		return err
	}
	lines, err := v.keyLines(keys, spent)
	if err != nil {
		return err
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	p := keysPage{Costs: costRange(networks)}
	if p.Together, err = v.togetherAllowance(spent); err != nil {
		return err
	}
	for _, line := range lines {
		if line.Key.Ended(time.Now()) {
			p.Ended = append(p.Ended, line)
		} else {
			p.Live = append(p.Live, line)
		}
	}
	return v.show(200, "keys", "Keys", p)
}

// keyLines describes keys, newest first. spent is the credits spent today.
func (v *visit) keyLines(keys []account.Key, spent map[account.KeyID]uint64) (all []keyLine, err error) {
	now := time.Now()
	for _, k := range slices.Backward(keys) {
		used, err := v.dashboard.config.Usage.LastUsed(v.r.Context(), k.ID)
		if err != nil {
			return nil, err
		}
		line := keyLine{Key: k, Name: keyName(&k), State: keyState(&k, now), Rules: rulesInWords(k.Rules), Used: used}
		if k.Unreadable == "" {
			line.allowance = newAllowance(v.dashboard.config.Allowance(&k), spent[k.ID], now)
		}
		all = append(all, line)
	}
	return all, nil
}

func keyName(k *account.Key) string { return cmp.Or(k.Name, "Key "+k.ID.String()) }

// soon is how long before its expiry a key is marked.
const soon = 7 * 24 * time.Hour

// keyState describes a key that is revoked, expired or about to expire; empty for
// any other.
func keyState(k *account.Key, now time.Time) string {
	switch {
	case k.Unreadable != "":
		return "cannot be read, disabled"
	case k.Unsaved && !k.Live():
		return "revoked, not yet durable"
	case !k.Live():
		return "revoked " + date(k.Revoked)
	case k.Ended(now):
		return "expired " + date(k.Expires)
	case !k.Expires.IsZero() && k.Expires.Sub(now) < soon:
		return "expires " + date(k.Expires)
	}
	return ""
}
