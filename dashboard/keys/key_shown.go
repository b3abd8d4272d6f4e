package keys

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// A form may be open for long, and sends all properties of its key. So it also sends those that it showed at first, in a
// hidden field, which tell what the user has changed.

// fieldShown is the name of that field.
const fieldShown = "shown"

// shownProperties is the JSON of that field.
type shownProperties struct {
	Name    string         `json:"name"`
	Expires time.Time      `json:"expires,omitzero"`
	Rules   *account.Rules `json:"rules,omitempty"`
}

func shownText(k *account.Key) string {
	text, _ := json.Marshal(shownProperties{k.Name, k.Expires, k.Rules}) // cannot fail
	return string(text)
}

// shownKey returns a key with the properties that the form showed; k itself if the form does not say which, or names
// what no key has. Lists that no key has could be so long that comparing them takes seconds.
func shownKey(v *site.Visit, k account.Key) account.Key {
	var shown shownProperties
	if err := json.Unmarshal([]byte(v.R.PostForm.Get(fieldShown)), &shown); err != nil || shown.Rules != nil && shown.Rules.Check() != nil {
		return k
	}
	k.Name, k.Expires, k.Rules = shown.Name, shown.Expires, shown.Rules
	return k
}

// readEdit reads the edit of a key from a form, and records problems in its fields. first is a form of the same fields,
// which is filled with what the form showed at first. A property that the user has left as it was shown stays as it was
// stored: the form shows no time of day, for example.
func readEdit(f, first *site.Form, from *account.Key) account.KeyEdit {
	fillKey(first, from)
	left := func(name string) bool { return sameField(f.Field(name), first.Field(name)) }
	name, expires, rules := f.Value("name"), readDay(f, "expires"), readRules(f, from.Rules)
	if left("name") {
		name = from.Name
	}
	if left("expires") {
		expires = from.Expires
	}
	if before := from.Rules; before != nil {
		for part, keep := range map[string]func(){
			FieldNetworks:  func() { rules.Networks = before.Networks },
			FieldMethods:   func() { rules.Methods = before.Methods },
			FieldContracts: func() { rules.Contracts = before.Contracts },
			FieldOrigins:   func() { rules.Origins = before.Origins },
			FieldAddresses: func() { rules.Addresses = before.Addresses },
		} {
			if left(part) {
				keep()
			}
		}
	}
	return account.KeyEdit{Name: &name, Rules: &rules, Expires: &expires, From: from}
}

// sameField reports whether two fields have the same value, as far as a form tells.
func sameField(a, b *site.Field) bool {
	switch a.Kind {
	case site.KindChecks: // sent in the order of the choices
		return slices.Equal(slices.Sorted(slices.Values(a.Values)), slices.Sorted(slices.Values(b.Values)))
	case site.KindText: // sent with other ends of lines
		return slices.Equal(strings.Fields(a.Value), strings.Fields(b.Value))
	}
	return strings.TrimSpace(a.Value) == strings.TrimSpace(b.Value)
}

// conflicting returns the form to show after a conflict. It has what the user has typed, and the present values elsewhere.
func conflicting(typed *site.Form, conflict *account.KeyConflict, networks []site.Network, from *account.Key) *site.Form {
	f, first := keyForm(networks, conflict.Key.Rules, from.Rules), keyForm(networks, from.Rules)
	fillKey(f, &conflict.Key)
	fillKey(first, from)
	for i, field := range f.Fields {
		present := strings.Join(append(strings.Fields(field.Value), field.Values...), " ")
		if !sameField(typed.Fields[i], first.Fields[i]) {
			field.Value, field.Values = typed.Fields[i].Value, typed.Fields[i].Values
		}
		if slices.Contains(conflict.Fields, account.Field(field.Name)) {
			if present == "" {
				present = "nothing"
			}
			field.Problem = "This was changed meanwhile. It is now: " + present
		}
	}
	f.Problem = "The key was changed while this page was open, and nothing of yours is saved. Compare the marked fields: if you save again, they become what you have typed."
	return f
}
