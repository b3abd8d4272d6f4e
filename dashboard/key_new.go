package dashboard

import (
	"errors"
	"slices"
	"time"

	"ashlar/account"
)

// newKeyPage is the data of the template key-new.
type newKeyPage struct {
	Form     *form
	Unfolded bool // show the fields that are not needed for a key
}

// issuedPage is the data of the template key-issued, the only page that shows a key.
type issuedPage struct {
	account.Issued
	What    string
	Name    string
	Overlap time.Time // until when the old key works; zero if there is none
	Uses    []use
}

const guardedYes = "yes"

func newKeyForm(networks []Network) *form {
	f := keyForm(networks, nil)
	f.fields = append(f.fields, &field{
		Name: "guarded", Label: "Password", Kind: kindChecks, Optional: true, Unmarked: true,
		Hint:    "For servers: the URL alone does not give access.",
		Choices: []choice{{guardedYes, "Require a password beside the key"}},
	})
	return f
}

// folded reports whether a field besides the name has been filled in or has a problem.
func (f *form) folded() bool {
	return slices.ContainsFunc(f.fields, func(one *field) bool {
		return one.Name != "name" && (one.Problem != "" || one.Value != "" || len(one.Values) > 0)
	})
}

func (v *visit) newKey() error {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	return v.show(200, "key-new", "Create a key", newKeyPage{Form: newKeyForm(networks)})
}

// createKey handles the form of newKey.
func (v *visit) createKey() error {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	f := newKeyForm(networks)
	f.read(v.r)
	k := account.NewKey{Name: f.value("name"), Rules: readRules(f), Expires: readDay(f, "expires"), Guarded: len(f.lines("guarded")) > 0}
	if f.ok() {
		issued, err := v.own().Create(v.r.Context(), k)
		switch {
		case err == nil:
			return v.showIssued(issuedPage{Issued: issued, What: "Your new key", Uses: v.uses(networks, issued.Key.Rules, issued.APIKey, issued.Password)})
		case errors.Is(err, account.ErrTooMany):
			f.Problem = sentence(err.Error())
		default:
			if err := f.refused(err); err != nil {
				return err
			}
		}
	}
	return v.show(statusOf(f), "key-new", "Create a key", newKeyPage{Form: f, Unfolded: f.folded()})
}

func (v *visit) showIssued(p issuedPage) error {
	p.Name = keyName(&p.Key)
	return v.show(200, "key-issued", p.What, p)
}
