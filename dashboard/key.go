package dashboard

import (
	"fmt"
	"time"

	"ashlar/account"
)

// keyPage is what the template of the same name is given.
type keyPage struct {
	Key      account.Key
	Name     string
	Live     bool
	State    string
	Used     time.Time
	Overlaps bool // the text that it had before still works
	Place    string
	Form     *form
	Uses     []use
}

// named returns the key in the path, if it belongs to who visits.
func (v *visit) named() (account.Key, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(v.r.PathValue("key"))) != nil {
		return account.Key{}, account.ErrNoKey
	}
	return v.own().Find(id.String())
}

// keyForm asks for what can be changed of a key, which has the rules present.
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
	password := ""
	if k.Guarded {
		password = passwordPlace
	}
	p.Uses = v.uses(networks, k.Rules, keyPlace, password)
	return v.show(statusOf(f), "key", p.Name, p)
}

// uses are lines to paste for each network that a key may be used on, with its text and
// its password, which is empty where none is needed.
func (v *visit) uses(networks []Network, rules *account.Rules, text, password string) (all []use) {
	for _, n := range networks {
		if rules.AllowsNetwork(n.Name) {
			url := endpoint(v.r, &n, text)
			all = append(all, use{n.Name, url, socketEndpoint(url), n.Snippets(url, password)})
		}
	}
	return all
}

// changeKey takes the form of key.
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
	if f.value("expires") != endDay(&k) { // else the time of the day, which is not shown, would be lost
		edit.Expires = &expires
	}
	if _, err := v.own().Edit(v.r.Context(), k.ID.String(), edit); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return v.showKey(k, f, networks)
	}
	v.say("Saved.")
	return v.lead("/keys/" + k.ID.String())
}

// endDay is when a key ends, as its form shows it; empty: never.
func endDay(k *account.Key) string {
	if k.Expires.IsZero() {
		return ""
	}
	return k.Expires.UTC().Format(time.DateOnly)
}

// readDay takes a day that may be left out.
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
