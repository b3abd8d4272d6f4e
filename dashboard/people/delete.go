package people

import (
	"errors"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// deletePage is the data of the template person-delete.
type deletePage struct {
	Person account.Account
	Form   *site.Form
	Keys   int // that would stop working
}

// showDeletion asks an operator for confirmation before an account is deleted.
func showDeletion(v *site.Visit) error {
	a, err := someone(v)
	if err != nil {
		return err
	}
	if a.ID == v.Who.ID {
		return v.Redirect("/account/delete")
	}
	return askDeletion(v, a, site.NewForm(site.TypedName(a.Label())))
}

func askDeletion(v *site.Visit, a account.Account, f *site.Form) error {
	all, err := v.Config.Keys.Of(a.ID).List(v.R.Context())
	if err != nil {
		return err
	}
	return v.Show(site.StatusOf(f), "person-delete", "Delete an account", &deletePage{a, f, keys.Usable(all, time.Now())}) // the template calls methods of pointers
}

// deletePerson deletes another account.
func deletePerson(v *site.Visit) error {
	a, err := someone(v)
	if err != nil {
		return err
	}
	if a.ID == v.Who.ID {
		return v.Redirect("/account/delete") // which asks for the password
	}
	f := site.NewForm(site.TypedName(a.Label()))
	f.Read(v.R)
	if f.OK() && !strings.EqualFold(f.Value(site.FieldTypedName), a.Label()) {
		f.Fail(site.FieldTypedName, "This is not what identifies the account.")
	}
	if !f.OK() {
		return askDeletion(v, a, f)
	}
	switch _, err := v.Config.Accounts.Delete(v.R.Context(), a.ID.String()); {
	case errors.Is(err, account.ErrLastOperator), errors.Is(err, account.ErrLastOwner):
		f.Problem = site.Sentence(err.Error())
		return askDeletion(v, a, f)
	case err != nil:
		return err
	}
	v.Say("The account " + a.Label() + " was deleted.")
	return v.Redirect("/people")
}
