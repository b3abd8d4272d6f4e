package people

import (
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// personPage is the data of the template person.
type personPage struct {
	Person account.Account
	Form   *site.Form
	Keys   []keys.Line // those that have ended last
	More   int         // number of keys that are not listed
	Link   string      // to set a password; empty if none was created
	// Members are those of a team, Teams the teams of a user.
	Members []account.Member
	Teams   []account.Membership
}

func personForm(a *account.Account) *site.Form {
	f := site.NewForm(
		&site.Field{Name: keys.FieldPerSecond, Label: "Credits a second", Kind: "number", Optional: true, Unmarked: true},
		&site.Field{Name: keys.FieldPerDay, Label: "Credits a day", Kind: "number", Optional: true, Unmarked: true},
		&site.Field{Name: "keys", Label: "Keys at once", Kind: "number", Optional: true, Unmarked: true},
	)
	if !a.IsTeam() {
		f.Fields = append(f.Fields, &site.Field{Name: "role", Label: "Role", Kind: site.KindSelect, Value: string(a.Role), Choices: roleChoices(), Hint: rolesHint})
	}
	for name, n := range map[string]uint64{keys.FieldPerSecond: uint64(a.Limits.PerSecond), keys.FieldPerDay: a.Limits.PerDay, "keys": uint64(a.Limits.Keys)} {
		if n > 0 {
			f.Fill(name, strconv.FormatUint(n, 10))
		}
	}
	return f
}

// rolesHint explains the choices, which would not fit a narrow screen if each explained itself.
const rolesHint = "A user has keys. An operator also manages all accounts."

func roleChoices() []site.Choice {
	return []site.Choice{{Value: string(account.RoleUser), Label: "User"}, {Value: string(account.RoleOperator), Label: "Operator"}}
}

// someone returns the account named in the path.
func someone(v *site.Visit) (account.Account, error) {
	var id account.ID
	if id.UnmarshalText([]byte(v.R.PathValue("person"))) != nil {
		return account.Account{}, account.ErrNoAccount
	}
	return v.Config.Accounts.Find(id.String())
}

func show(v *site.Visit) error {
	a, err := someone(v)
	if err != nil {
		return err
	}
	return showPerson(v, personPage{Person: a, Form: personForm(&a)})
}

func showPerson(v *site.Visit, p personPage) error {
	all, err := v.Config.Keys.Of(p.Person.ID).List(v.R.Context())
	if err != nil {
		return err
	}
	spent, err := keys.SpentToday(v, p.Person.ID, all)
	if err != nil {
		return err
	}
	live, ended := keys.Divide(all, time.Now())
	p.More = len(all) - len(live) - len(ended)
	if p.Keys, err = keys.Lines(v, append(ended, live...), spent); err != nil {
		return err
	}
	if p.Person.IsTeam() && p.Person.Unreadable == "" {
		if p.Members, err = v.Config.Accounts.Members(v.R.Context(), p.Person.ID); err != nil {
			return err
		}
	}
	p.Teams = v.Config.Accounts.Teams(p.Person.ID)
	return v.Show(site.StatusOf(p.Form), "person", p.Person.Label(), &p) // the template calls methods of pointers
}
