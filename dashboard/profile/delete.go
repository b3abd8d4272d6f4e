package profile

import (
	"strings"
	"time"

	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// deletePage is the data of the template account-delete.
type deletePage struct {
	Form    *site.Form
	Keys    int    // that would stop working
	Passkey string // options to use a passkey of the account; empty: it has none
}

// deleteForm asks for the account's name and for everything that proves who the user is.
func deleteForm(v *site.Visit) *site.Form {
	return site.NewForm(append([]*site.Field{site.TypedName(v.Who.Email)}, v.ProofFields("")...)...)
}

func showDeletion(v *site.Visit) error { return askDeletion(v, deleteForm(v)) }

func askDeletion(v *site.Visit, f *site.Form) error {
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	p := deletePage{Form: f, Keys: keys.Usable(own, time.Now())}
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(site.StatusOf(f), "account-delete", "Delete your account", p)
}

// deleteAccount deletes the account of the signed-in user.
func deleteAccount(v *site.Visit) error {
	f := v.ReadProven(deleteForm(v), "")
	if f.OK() && !strings.EqualFold(f.Value(site.FieldTypedName), v.Who.Email) {
		f.Fail(site.FieldTypedName, "This is not the account’s e-mail address.")
	}
	deleted, err := v.Delete(f, v.Who.ID)
	switch {
	case err != nil:
		return err
	case !deleted:
		return askDeletion(v, f.Form)
	}
	return leave(v)
}

// leave ends the session of a deleted account.
func leave(v *site.Visit) error {
	if err := v.Sessions.Destroy(v.R.Context()); err != nil {
		return err
	}
	v.Who = nil
	return v.Show(200, "account-deleted", "Account deleted", nil)
}
