package site

import (
	"maps"
	"net/url"
	"slices"

	"ashlar/account"
)

// prefixReprove is the prefix of the fields of a proof, which are sent with those of another form.
const prefixReprove = "proof-"

// SensitiveAction is an action that needs a proof of who the visitor is, and whose form has no fields for one.
type SensitiveAction struct {
	Question string // title of the page that asks for the proof
	Effect   string // what the action does
	Button   string
	Danger   bool   // the action takes something away
	Back     string // path of the page with the form
	BackTo   string // its name
}

// reprovePage is the data of the template reprove.
type reprovePage struct {
	SensitiveAction
	Path    string      // of the form
	Kept    []keptValue // what the form sent
	Form    *Form
	Passkey string // options to use a passkey of the visitor; empty: there is none
}

type keptValue struct{ Name, Value string }

// Reproved reports whether the request proves again who the visitor is. It consumes the proof, so each action needs
// another one: if a session remembered a proof, a stolen session would need none while that lasts. Without a valid
// proof it answers with a page that asks for one, and that sends the form again with it. Call it when the rest of the
// form is valid, and return unless it returns true.
func (v *Visit) Reproved(a SensitiveAction) (bool, error) {
	f := NewForm(v.ProofFields(prefixReprove)...)
	asked := len(f.Fields) == 0 || v.R.PostForm.Has(fieldPasskey) || slices.ContainsFunc(f.Fields, func(one *Field) bool { return v.R.PostForm.Has(one.Name) })
	if !asked {
		return false, v.askReproof(a, f)
	}
	proved, err := v.ReadProven(f, prefixReprove).Act(v.Reprove)
	if proved || err != nil {
		return proved, err
	}
	return false, v.askReproof(a, f)
}

// Reprove checks and consumes a proof of the visitor. To compare a password may take a while, so a session or a role that
// has ended meanwhile does not count, as in readForm.
func (v *Visit) Reprove(by account.Reproof) error {
	if err := v.Config.Accounts.Reprove(v.R.Context(), v.Who.ID, by); err != nil {
		return err
	}
	now, err := v.Config.Accounts.Resume(v.Session)
	if err == nil && now.Role != v.Who.Role {
		err = errForbidden
	}
	return err
}

// askReproof shows the page with the fields of a proof.
func (v *Visit) askReproof(a SensitiveAction, f *Form) (err error) {
	p := reprovePage{SensitiveAction: a, Path: v.R.URL.Path, Kept: keptValues(v.R.PostForm, f), Form: f}
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(StatusOf(f), "reprove", a.Question, p)
}

// keptValues returns what a form sent, without the proof.
func keptValues(sent url.Values, proof *Form) (kept []keptValue) {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if name == fieldPasskey || proof.Field(name) != nil {
			continue
		}
		for _, value := range sent[name] {
			kept = append(kept, keptValue{name, value})
		}
	}
	return kept
}
