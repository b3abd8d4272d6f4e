package keys

import (
	"errors"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// newKeyPage is the data of the template key-new.
type newKeyPage struct {
	rulesForm
	Unfolded bool // show the fields that are not needed for a key
}

// issuedPage is the data of the template key-issued, the only page that shows a key.
type issuedPage struct {
	account.Issued
	What    string
	Name    string
	Overlap time.Time // until when the old key works; zero if there is none
	Uses    []site.Use
}

const guardedYes = "yes"

func newKeyForm(networks []site.Network) *site.Form {
	f := keyForm(networks)
	f.Fields = append(f.Fields, &site.Field{
		Name: "guarded", Label: "Password", Kind: site.KindChecks, Optional: true, Unmarked: true,
		Hint:    "For servers: the URL alone does not give access.",
		Choices: []site.Choice{{Value: guardedYes, Label: "Require a password beside the key"}},
	})
	return f
}

// folded reports whether a field besides the name has been filled in or has a problem.
func folded(f *site.Form) bool {
	return slices.ContainsFunc(f.Fields, func(one *site.Field) bool {
		return one.Name != "name" && (one.Problem != "" || one.Value != "" || len(one.Values) > 0)
	})
}

func showNew(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	return v.Show(200, "key-new", "Create a key", newKeyPage{rulesForm: newRulesForm(newKeyForm(networks), networks)})
}

// create handles the form of newKey.
func create(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	f := newKeyForm(networks)
	f.Read(v.R)
	k := account.NewKey{Name: f.Value("name"), Rules: readRules(f, nil), Expires: readDay(f, "expires"), Guarded: len(f.Lines("guarded")) > 0}
	if f.OK() {
		issued, err := Own(v).Create(v.R.Context(), k)
		switch {
		case err == nil:
			return showIssued(v, issuedPage{Issued: issued, What: "Your new key", Uses: uses(v, networks, issued.Key.Rules, issued.APIKey, issued.Password)})
		case errors.Is(err, account.ErrTooMany):
			f.Problem = site.Sentence(err.Error())
		default:
			if err := f.Refused(err); err != nil {
				return err
			}
		}
	}
	return v.Show(site.StatusOf(f), "key-new", "Create a key", newKeyPage{newRulesForm(f, networks), folded(f)})
}

func showIssued(v *site.Visit, p issuedPage) error {
	p.Name = Name(&p.Key)
	return v.Show(200, "key-issued", p.What, p)
}
