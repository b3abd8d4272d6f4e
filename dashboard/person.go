package dashboard

import (
	"fmt"
	"net/url"
	"strconv"

	"ashlar/account"
)

// personPage is the data of the template person.
type personPage struct {
	Person account.Account
	Form   *form
	Keys   []keyLine
	Link   string // to set a password; empty if none was created
}

func personForm(a *account.Account) *form {
	f := newForm(
		&field{Name: "role", Label: "Role", Kind: kindSelect, Choices: roleChoices()},
		&field{Name: fieldPerSecond, Label: "Credits a second", Kind: "number", Optional: true, Unmarked: true},
		&field{Name: fieldPerDay, Label: "Credits a day", Kind: "number", Optional: true, Unmarked: true},
		&field{Name: "keys", Label: "Keys at once", Kind: "number", Optional: true, Unmarked: true},
	)
	f.fill("role", string(a.Role))
	for name, n := range map[string]uint64{fieldPerSecond: uint64(a.Limits.PerSecond), fieldPerDay: a.Limits.PerDay, "keys": uint64(a.Limits.Keys)} {
		if n > 0 {
			f.fill(name, strconv.FormatUint(n, 10))
		}
	}
	return f
}

func roleChoices() []choice {
	return []choice{{string(account.RoleUser), "User: has keys"}, {string(account.RoleOperator), "Operator: also manages all accounts"}}
}

// someone returns the account named in the path.
func (v *visit) someone() (account.Account, error) {
	var id account.ID
	if id.UnmarshalText([]byte(v.r.PathValue("person"))) != nil {
		return account.Account{}, account.ErrNoAccount
	}
	return v.dashboard.config.Accounts.Find(id.String())
}

func (v *visit) person() error {
	a, err := v.someone()
	if err != nil {
		return err
	}
	return v.showPerson(personPage{Person: a, Form: personForm(&a)})
}

func (v *visit) showPerson(p personPage) error {
	keys, err := v.dashboard.config.Keys.Of(p.Person.ID).List(v.r.Context())
	if err != nil {
		return err
	}
	spent, err := v.spentToday(p.Person.ID, keys)
	if err != nil {
		return err
	}
	if p.Keys, err = v.keyLines(keys, spent); err != nil {
		return err
	}
	return v.show(statusOf(p.Form), "person", p.Person.Email, &p) // the template calls methods of pointers
}

// changePerson handles the forms of person.
func (v *visit) changePerson() error {
	a, err := v.someone()
	if err != nil {
		return err
	}
	f := personForm(&a)
	accounts, ctx, id := v.dashboard.config.Accounts, v.r.Context(), a.ID.String()
	refuse := func(problem string) error {
		f.Problem = problem
		return v.showPerson(personPage{Person: a, Form: f})
	}
	switch v.r.PostForm.Get("do") {
	case "disable":
		if a.ID == v.who.ID {
			return refuse("You cannot disable your own account, because there may be no other operator to enable it.")
		}
		disabled, err := accounts.Disable(ctx, id)
		if err != nil {
			return err
		}
		v.sayDone("The account was disabled, and its keys are rejected.", disabled.Unsaved)
	case "enable":
		if _, err := accounts.Enable(ctx, id); err != nil {
			return err
		}
		v.say("The account was enabled.")
	case "reset":
		token, until, err := accounts.Reset(ctx, id)
		if err != nil {
			return err
		}
		a.Resets = until
		return v.showPerson(personPage{Person: a, Form: f, Link: v.linkTo("/reset", fieldToken, token)})
	case "save":
		f.read(v.r)
		limits := account.Limits{
			PerSecond: uint32(readNumber(f, fieldPerSecond, 32)), PerDay: readNumber(f, fieldPerDay, 53), Keys: uint32(readNumber(f, "keys", 16)),
		}
		role := account.Role(f.value("role"))
		if a.ID == v.who.ID && role != a.Role {
			f.fail("role", "You cannot remove your own operator role, because there may be no other operator to restore it.")
		}
		if !f.ok() {
			return v.showPerson(personPage{Person: a, Form: f})
		}
		saved, err := v.saveLimits(a, role, limits)
		if err != nil {
			return err
		}
		v.sayDone("Saved.", saved.Unsaved)
	default:
		return errForm
	}
	return v.redirect("/people/" + id)
}

// saveLimits changes the role and the limits of an account where they differ, and returns
// the account.
func (v *visit) saveLimits(a account.Account, role account.Role, limits account.Limits) (saved account.Account, err error) {
	accounts, ctx := v.dashboard.config.Accounts, v.r.Context()
	saved = a
	if role != a.Role {
		saved, err = accounts.SetRole(ctx, a.ID.String(), role)
	}
	if err == nil && limits != a.Limits {
		saved, err = accounts.SetLimits(ctx, a.ID.String(), limits)
	}
	return saved, err
}

// linkTo returns a page's full URL, to be sent to a user.
func (v *visit) linkTo(path, name, value string) string {
	return fmt.Sprintf("%s://%s%s?%s=%s", scheme(v.r), v.r.Host, path, name, url.QueryEscape(value))
}
