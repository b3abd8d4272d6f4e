package people

import (
	"cmp"
	"errors"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
)

// changePerson handles the forms of person. Actions that give access to an account, or to all of them, ask the operator
// for a proof, because a session that leaked must not become lasting access.
func changePerson(v *site.Visit) error {
	a, err := someone(v)
	if err != nil {
		return err
	}
	switch v.R.PostForm.Get("do") {
	case "disable":
		return disable(v, a)
	case "enable":
		return enable(v, a)
	case "reset-factor":
		return resetFactor(v, a)
	case "reset":
		return linkPassword(v, a)
	case "save":
		return save(v, a)
	}
	return site.ErrForm
}

// personPath is the path of an account's page.
func personPath(a account.Account) string { return "/people/" + a.ID.String() }

// refuse shows the page of an account with a problem.
func refuse(v *site.Visit, a account.Account, problem string) error {
	f := personForm(&a)
	f.Problem = problem
	return showPerson(v, personPage{Person: a, Form: f})
}

// disable needs no proof: it can be undone, and may be urgent.
func disable(v *site.Visit, a account.Account) error {
	if a.ID == v.Who.ID {
		return refuse(v, a, "You cannot disable your own account, because there may be no other operator to enable it.")
	}
	disabled, err := v.Config.Accounts.Disable(v.R.Context(), a.ID.String())
	if err != nil {
		return err
	}
	v.SayDone("The account was disabled, and its keys are rejected.", disabled.Unsaved)
	return v.Redirect(personPath(a))
}

// enable needs a proof if the account is an operator's, because it then manages all accounts again.
func enable(v *site.Visit, a account.Account) error {
	if a.Role == account.RoleOperator {
		proved, err := v.Reproved(site.SensitiveAction{
			Question: "Enable an operator?", Effect: a.Label() + " can sign in and manage all accounts again, and the keys of the account are accepted.",
			Button: "Enable the account", Back: personPath(a), BackTo: a.Label(),
		})
		if err != nil || !proved {
			return err
		}
	}
	if _, err := v.Config.Accounts.Enable(v.R.Context(), a.ID.String()); err != nil {
		return err
	}
	v.Say("The account was enabled.")
	return v.Redirect(personPath(a))
}

// resetFactor removes the second factor of another account.
func resetFactor(v *site.Visit, a account.Account) error {
	if a.ID == v.Who.ID {
		return refuse(v, a, "Remove your own second factor on the page of your account, with a code.")
	}
	if a.SecondFactor.IsZero() {
		return refuse(v, a, "The account has no second factor.")
	}
	proved, err := v.Reproved(site.SensitiveAction{
		Question: "Reset a second factor?",
		Effect:   "The authenticator app, the passkeys and the recovery codes of " + a.Label() + " are removed, and all sessions of the account end. The password is then enough to sign in.",
		Button:   "Reset the second factor", Danger: true, Back: personPath(a), BackTo: a.Label(),
	})
	if err != nil || !proved {
		return err
	}
	reset, err := v.Config.Accounts.ResetFactor(v.R.Context(), a.ID.String())
	var invalid *account.Invalid
	switch {
	case errors.As(err, &invalid): // it was removed meanwhile
		return refuse(v, a, site.Sentence(invalid.Problem))
	case err != nil:
		return err
	}
	v.SayDone("The second factor was reset. The password is enough to sign in until the owner adds another one.", reset.Unsaved)
	return v.Redirect(personPath(a))
}

// linkPassword makes a link with which the password of an account can be set. Only this answer shows it.
func linkPassword(v *site.Visit, a account.Account) error {
	if a.IsTeam() {
		return refuse(v, a, site.Sentence(account.ErrTeam.Error()))
	}
	proved, err := v.Reproved(site.SensitiveAction{
		Question: "Make a link to set a password?",
		Effect:   "The link can set the password of " + a.Label() + " once, within a day. The current password works until the link is used.",
		Button:   "Make the link", Back: personPath(a), BackTo: a.Label(),
	})
	if err != nil || !proved {
		return err
	}
	token, until, err := v.Config.Accounts.Reset(v.R.Context(), a.ID.String())
	if err != nil {
		return err
	}
	a.Resets = until
	return showPerson(v, personPage{Person: a, Form: personForm(&a), Link: v.LinkTo("/reset", signin.FieldToken, token)})
}

// save changes the role and the limits of an account where they differ. Another role needs a proof.
func save(v *site.Visit, a account.Account) error {
	f := personForm(&a)
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
	accounts, ctx, id := v.Config.Accounts, v.R.Context(), a.ID.String()
	saved := a
	if role != a.Role {
		proved, err := v.Reproved(roleChange(a, role, limits != a.Limits))
		if err != nil || !proved {
			return err
		}
		if saved, err = accounts.SetRole(ctx, id, role); err != nil {
			return err
		}
	}
	if limits != a.Limits {
		var err error
		if saved, err = accounts.SetLimits(ctx, id, limits); err != nil {
			return err
		}
	}
	v.SayDone("Saved.", saved.Unsaved)
	return v.Redirect(personPath(a))
}

// roleChange describes a change of the role of an account, with which limits may change, too.
func roleChange(a account.Account, role account.Role, limits bool) site.SensitiveAction {
	change := site.SensitiveAction{
		Question: "Make this account an operator?", Effect: "An operator manages all accounts: " + a.Label() + " can then do what you can.",
		Button: "Make it an operator", Back: personPath(a), BackTo: a.Label(),
	}
	if role != account.RoleOperator {
		change.Question, change.Button, change.Danger = "Make this operator a user?", "Make it a user", true
		change.Effect = a.Label() + " can then manage no other accounts."
	}
	if limits {
		change.Effect += " The limits that you entered are saved, too."
	}
	return change
}
