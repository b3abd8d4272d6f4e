package dashboard

import (
	"fmt"
	"time"

	"ashlar/account"
)

// keyPage is the data of the template key.
type keyPage struct {
	Key      account.Key
	Name     string
	Live     bool
	State    string
	Used     time.Time
	Overlaps bool // the old key still works
	allowance
	Place string
	Form  *form
	Uses  []use
}

// named returns the key named in the path if it belongs to the visitor's account.
func (v *visit) named() (account.Key, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(v.r.PathValue("key"))) != nil {
		return account.Key{}, account.ErrNoKey
	}
	return v.own().Find(id.String())
}

// keyForm returns a form for the changeable properties of a key; present is the key's
// current rules.
func keyForm(networks []Network, present *account.Rules) *form {
	return newForm(append([]*field{
		{Name: "name", Label: "Name", Kind: "text", Complete: "off", Optional: true, Hint: "For example, the program that uses the key."},
		{Name: "expires", Label: "Expires on", Kind: "date", Optional: true, Hint: "Expires at 00:00 UTC on this day."},
	}, rulesFields(networks, present)...)...)
}

func (v *visit) key() error {
	k, err := v.named()
	if err != nil {
		return err
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	f := keyForm(networks, k.Rules)
	f.fill("name", k.Name)
	f.fill("expires", endDay(&k))
	fillRules(f, k.Rules)
	return v.showKey(k, f, networks)
}

func (v *visit) showKey(k account.Key, f *form, networks []Network) error {
	now := time.Now()
	used, err := v.dashboard.config.Usage.LastUsed(v.r.Context(), k.ID)
	if err != nil {
		return err
	}
	p := keyPage{
		Key: k, Name: keyName(&k), Live: !k.Ended(now), State: keyState(&k, now), Used: used,
		Overlaps: now.Before(k.Overlap), Place: keyPlace, Form: f,
	}
	spent, err := v.spentToday(k.Owner, []account.Key{k})
	if err != nil {
		return err
	}
	if p.Live {
		p.allowance = newAllowance(v.dashboard.config.Allowance(&k), spent[k.ID], now)
	}
	password := ""
	if k.Guarded {
		password = passwordPlace
	}
	p.Uses = v.uses(networks, k.Rules, keyPlace, password)
	return v.show(statusOf(f), "key", p.Name, p)
}

// uses returns example calls for each network that a key may use. The password is empty if
// the key needs none.
func (v *visit) uses(networks []Network, rules *account.Rules, text, password string) (all []use) {
	for _, n := range networks {
		if rules.AllowsNetwork(n.Name) {
			url := endpoint(v.r, &n, text)
			all = append(all, use{n.Name, url, socketEndpoint(url), n.Snippets(url, password)})
		}
	}
	return all
}

// changeKey handles the form of key.
func (v *visit) changeKey() error {
	k, err := v.named()
	if err != nil {
		return err
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	f := keyForm(networks, k.Rules)
	f.read(v.r)
	name, rules, expires := f.value("name"), readRules(f), readDay(f, "expires")
	if !f.ok() {
		return v.showKey(k, f, networks)
	}
	edit := account.KeyEdit{Name: &name, Rules: &rules}
	if f.value("expires") != endDay(&k) { // keeps the time of day, which the form does not show
		edit.Expires = &expires
	}
	changed, err := v.own().Edit(v.r.Context(), k.ID.String(), edit)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return v.showKey(k, f, networks)
	}
	v.sayDone("Saved.", changed.Unsaved)
	return v.redirect("/keys/" + k.ID.String())
}

// endDay returns the day on which a key expires, as the form shows it; empty if it does not
// expire.
func endDay(k *account.Key) string {
	if k.Expires.IsZero() {
		return ""
	}
	return k.Expires.UTC().Format(time.DateOnly)
}

// readDay reads an optional date.
func readDay(f *form, name string) time.Time {
	text := f.value(name)
	if text == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.UTC)
	if err != nil {
		f.fail(name, fmt.Sprintf("Expected a date such as %s, or leave this empty.", time.Now().UTC().AddDate(0, 3, 0).Format(time.DateOnly)))
	}
	return day
}
