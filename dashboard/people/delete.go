package people

import (
	"strings"
	"time"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// deletePage is the data of the template person-delete.
type deletePage struct {
	Person  account.Account
	Form    *site.Form
	Keys    int    // that would stop working
	Passkey string // options to use a passkey of the operator; empty: there is none
}

// deleteForm asks for what identifies the account, and for everything that proves who the operator is.
func deleteForm(v *site.Visit, a account.Account) *site.Form {
	return site.NewForm(append([]*site.Field{site.TypedName(a.Label())}, v.ProofFields("")...)...)
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
	return askDeletion(v, a, deleteForm(v, a))
}

func askDeletion(v *site.Visit, a account.Account, f *site.Form) error {
	all, err := v.Config.Keys.Of(a.ID).List(v.R.Context())
	if err != nil {
		return err
	}
	p := &deletePage{Person: a, Form: f, Keys: keys.Usable(all, time.Now())} // the template calls methods of pointers
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(site.StatusOf(f), "person-delete", "Delete an account", p)
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
	f := v.ReadProven(deleteForm(v, a), "")
	if typed := f.Value(site.FieldTypedName); typed != "" && !strings.EqualFold(typed, a.Label()) {
		f.Fail(site.FieldTypedName, "This is not what identifies the account.")
	}
	deleted, err := v.Delete(f, a.ID)
	switch {
	case err != nil:
		return err
	case !deleted:
		return askDeletion(v, a, f.Form)
	}
	v.Say("The account " + a.Label() + " was deleted.")
	return v.Redirect("/people")
}
