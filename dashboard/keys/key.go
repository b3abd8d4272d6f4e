package keys

import (
	"errors"
	"fmt"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// keyPage is the data of the template key.
type keyPage struct {
	Key      account.Key
	Name     string
	Live     bool
	State    string
	Used     time.Time
	Overlaps bool // the old key still works
	Allowance
	Place string
	rulesForm
	Uses []site.Use
}

// Named returns the key named in the path if it belongs to the account that the page is about.
func Named(v *site.Visit) (account.Key, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(v.R.PathValue("key"))) != nil {
		return account.Key{}, account.ErrNoKey
	}
	return Own(v).Find(id.String())
}

// keyForm returns a form for the changeable properties of a key; present is the key's
// current rules.
func keyForm(networks []site.Network, present *account.Rules) *site.Form {
	return site.NewForm(append([]*site.Field{
		{Name: "name", Label: "Name", Kind: "text", Complete: "off", Optional: true, Hint: "For example, the program that uses the key."},
		{Name: "expires", Label: "Expires on", Kind: "date", Optional: true, Hint: "Expires at 00:00 UTC on this day."},
	}, rulesFields(networks, present)...)...)
}

func show(v *site.Visit) error {
	k, err := Named(v)
	if err != nil {
		return err
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	f := keyForm(networks, k.Rules)
	f.Fill("name", k.Name)
	f.Fill("expires", endDay(&k))
	fillRules(f, k.Rules)
	return showKey(v, k, f, networks)
}

func showKey(v *site.Visit, k account.Key, f *site.Form, networks []site.Network) error {
	now := time.Now()
	used, err := v.Config.Usage.LastUsed(v.R.Context(), k.ID)
	if err != nil {
		return err
	}
	p := keyPage{
		Key: k, Name: Name(&k), Live: !k.Ended(now), State: state(&k, now), Used: used,
		Overlaps: now.Before(k.Overlap), Place: site.KeyPlace, rulesForm: newRulesForm(f, networks),
	}
	spent, err := SpentToday(v, k.Owner, []account.Key{k})
	if err != nil {
		return err
	}
	if p.Live {
		p.Allowance = NewAllowance(v.Config.Allowance(&k), spent[k.ID], now)
	}
	password := ""
	if k.Guarded {
		password = site.PasswordPlace
	}
	p.Uses = uses(v, networks, k.Rules, site.KeyPlace, password)
	return v.Show(site.StatusOf(f), "key", p.Name, p)
}

// uses returns example calls for each network that a key may use. The password is empty if
// the key needs none.
func uses(v *site.Visit, networks []site.Network, rules *account.Rules, text, password string) (all []site.Use) {
	for _, n := range networks {
		if rules.AllowsNetwork(n.Name) {
			url := site.Endpoint(v.R, &n, text)
			all = append(all, site.Use{Network: n.Name, URL: url, Socket: site.SocketEndpoint(url), Snippets: n.Snippets(url, password)})
		}
	}
	return all
}

// change handles the form of key.
func change(v *site.Visit) error {
	k, err := Named(v)
	if err != nil {
		return err
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	f := keyForm(networks, k.Rules)
	f.Read(v.R)
	name, rules, expires := f.Value("name"), readRules(f, k.Rules), readDay(f, "expires")
	if !f.OK() {
		return showKey(v, k, f, networks)
	}
	edit := k.EditTo(name, rules)
	if f.Value("expires") != endDay(&k) { // keeps the time of day, which the form does not show
		edit.Expires = &expires
	}
	changed, err := Own(v).Edit(v.R.Context(), k.ID.String(), edit)
	if errors.Is(err, account.ErrTooMany) { // of an expired key, which is to be valid again
		f.Problem = site.Sentence(err.Error())
		return showKey(v, k, f, networks)
	}
	if err != nil {
		if err := f.Refused(err); err != nil {
			return err
		}
		return showKey(v, k, f, networks)
	}
	v.SayDone("Saved.", changed.Unsaved)
	return v.Redirect(v.Path("/keys/" + k.ID.String()))
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
func readDay(f *site.Form, name string) time.Time {
	text := f.Value(name)
	if text == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.UTC)
	if err != nil {
		f.Fail(name, fmt.Sprintf("Expected a date such as %s, or leave this empty.", time.Now().UTC().AddDate(0, 3, 0).Format(time.DateOnly)))
	}
	return day
}
