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
	Shown string // what the form showed at first, see shownKey
	Uses  []site.Use
}

// Named returns the key named in the path if it belongs to the account that the page is about.
func Named(v *site.Visit) (account.Key, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(v.R.PathValue("key"))) != nil {
		return account.Key{}, account.ErrNoKey
	}
	return Own(v).Find(id.String())
}

// keyForm returns a form for the changeable properties of a key. known is as for rulesFields.
func keyForm(networks []site.Network, known ...*account.Rules) *site.Form {
	return site.NewForm(append([]*site.Field{
		{Name: "name", Label: "Name", Kind: "text", Complete: "off", Optional: true, Hint: "For example, the program that uses the key."},
		{Name: "expires", Label: "Expires on", Kind: "date", Optional: true, Hint: "Expires at 00:00 UTC on this day."},
	}, rulesFields(networks, known...)...)...)
}

// fillKey fills the form with a key's properties.
func fillKey(f *site.Form, k *account.Key) {
	f.Fill("name", k.Name)
	f.Fill("expires", endDay(k))
	fillRules(f, k.Rules)
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
	fillKey(f, &k)
	return showKey(v, k, f, networks, &k)
}

// showKey shows a key with a form, whose values were those of shown before the user changed some.
func showKey(v *site.Visit, k account.Key, f *site.Form, networks []site.Network, shown *account.Key) error {
	now := time.Now()
	used, err := v.Config.Usage.LastUsed(v.R.Context(), k.ID)
	if err != nil {
		return err
	}
	p := keyPage{
		Key: k, Name: Name(&k), Live: !k.Ended(now), State: state(&k, now), Used: used,
		Overlaps: now.Before(k.Overlap), Place: site.KeyPlace, rulesForm: newRulesForm(f, networks), Shown: shownText(shown),
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

// change handles the form of key. It changes what the user has changed, and nothing that somebody else has changed since
// the form was shown.
func change(v *site.Visit) error {
	k, err := Named(v)
	if err != nil {
		return err
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	from := shownKey(v, k)
	f := keyForm(networks, k.Rules, from.Rules)
	f.Read(v.R)
	edit := readEdit(f, keyForm(networks, k.Rules, from.Rules), &from)
	if !f.OK() {
		return showKey(v, k, f, networks, &from)
	}
	changed, err := Own(v).Edit(v.R.Context(), k.ID.String(), edit)
	var conflict *account.KeyConflict
	switch {
	case err == nil:
		v.SayDone("Saved.", changed.Unsaved)
		return v.Redirect(v.Path("/keys/" + k.ID.String()))
	case errors.As(err, &conflict):
		f = conflicting(f, conflict, networks, &from)
		return showKey(v, conflict.Key, f, networks, &conflict.Key)
	case errors.Is(err, account.ErrTooMany): // of an expired key, which is to be valid again
		f.Problem = site.Sentence(err.Error())
	default:
		if err := f.Refused(err); err != nil {
			return err
		}
	}
	return showKey(v, k, f, networks, &from)
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
