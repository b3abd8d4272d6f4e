package teams

import (
	"strings"
	"time"

	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// deletePage is the data of the template team-delete.
type deletePage struct {
	Form    *site.Form
	Keys    int    // that would stop working
	Passkey string // options to use a passkey of the visitor; empty: there is none
}

// deleteForm asks for the team's name and for everything that proves who the user is.
func deleteForm(v *site.Visit) *site.Form {
	return site.NewForm(append([]*site.Field{site.TypedName(v.Account.Team)}, v.ProofFields("")...)...)
}

func showDeletion(v *site.Visit) error { return askDeletion(v, deleteForm(v)) }

func askDeletion(v *site.Visit, f *site.Form) error {
	all, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	p := deletePage{Form: f, Keys: keys.Usable(all, time.Now())}
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(site.StatusOf(f), "team-delete", "Delete the team", p)
}

// deleteTeam deletes a team with its keys.
func deleteTeam(v *site.Visit) error {
	f := v.ReadProven(deleteForm(v), "")
	if f.OK() && f.Value(site.FieldTypedName) != strings.TrimSpace(v.Account.Team) {
		f.Fail(site.FieldTypedName, "This is not the team’s name.")
	}
	deleted, err := v.Delete(f, v.Account.ID)
	switch {
	case err != nil:
		return err
	case !deleted:
		return askDeletion(v, f.Form)
	}
	v.Say("The team " + v.Account.Team + " was deleted.")
	return v.Redirect("/teams")
}
