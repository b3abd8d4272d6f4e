package people

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/signin"
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

// changePerson handles the forms of person.
func changePerson(v *site.Visit) error {
	a, err := someone(v)
	if err != nil {
		return err
	}
	f := personForm(&a)
	accounts, ctx, id := v.Config.Accounts, v.R.Context(), a.ID.String()
	refuse := func(problem string) error {
		f.Problem = problem
		return showPerson(v, personPage{Person: a, Form: f})
	}
	switch v.R.PostForm.Get("do") {
	case "disable":
		if a.ID == v.Who.ID {
			return refuse("You cannot disable your own account, because there may be no other operator to enable it.")
		}
		disabled, err := accounts.Disable(ctx, id)
		if err != nil {
			return err
		}
		v.SayDone("The account was disabled, and its keys are rejected.", disabled.Unsaved)
	case "enable":
		if _, err := accounts.Enable(ctx, id); err != nil {
			return err
		}
		v.Say("The account was enabled.")
	case "reset-factor":
		if a.ID == v.Who.ID {
			return refuse("Remove your own second factor on the page of your account, with a code.")
		}
		reset, err := accounts.ResetFactor(ctx, id)
		if err != nil {
			if err := f.Refused(err); err != nil {
				return err
			}
			return showPerson(v, personPage{Person: a, Form: f})
		}
		v.SayDone("The second factor was reset. The password is enough to sign in until the owner adds another one.", reset.Unsaved)
	case "reset":
		token, until, err := accounts.Reset(ctx, id)
		if errors.Is(err, account.ErrTeam) {
			return refuse(site.Sentence(err.Error()))
		}
		if err != nil {
			return err
		}
		a.Resets = until
		return showPerson(v, personPage{Person: a, Form: f, Link: v.LinkTo("/reset", signin.FieldToken, token)})
	case "save":
		f.Read(v.R)
		limits := account.Limits{
			PerSecond: uint32(site.ReadNumber(f, keys.FieldPerSecond, 32)), PerDay: site.ReadNumber(f, keys.FieldPerDay, 53), Keys: uint32(site.ReadNumber(f, "keys", 16)),
		}
		role := cmp.Or(account.Role(f.Value("role")), a.Role) // a team has no field for it
		if a.ID == v.Who.ID && role != a.Role {
			f.Fail("role", "You cannot remove your own operator role, because there may be no other operator to restore it.")
		}
		if !f.OK() {
			return showPerson(v, personPage{Person: a, Form: f})
		}
		saved, err := saveLimits(v, a, role, limits)
		if err != nil {
			return err
		}
		v.SayDone("Saved.", saved.Unsaved)
	default:
		return site.ErrForm
	}
	return v.Redirect("/people/" + id)
}

// saveLimits changes the role and the limits of an account where they differ, and returns
// the account.
func saveLimits(v *site.Visit, a account.Account, role account.Role, limits account.Limits) (saved account.Account, err error) {
	accounts, ctx := v.Config.Accounts, v.R.Context()
	saved = a
	if role != a.Role {
		saved, err = accounts.SetRole(ctx, a.ID.String(), role)
	}
	if err == nil && limits != a.Limits {
		saved, err = accounts.SetLimits(ctx, a.ID.String(), limits)
	}
	return saved, err
}
