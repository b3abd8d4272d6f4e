package dashboard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ashlar/account"
)

// accountPage is the data of the template account.
type accountPage struct {
	Form  *form
	Email *form // to change the address; no fields where addresses are not verified
	Role  string
	Began time.Time // when the session began
	Keys  string    // how many there are, and may be
	Costs string
	allowance
}

func passwordForm() *form {
	return newForm(
		&field{Name: "present", Label: "Current password", Kind: kindSecret, Complete: "current-password"},
		passwordField("New password"),
	)
}

func (v *visit) account() error { return v.showAccount(passwordForm(), emailForm()) }

func (v *visit) showAccount(f, email *form) error {
	if !v.dashboard.config.Accounts.Mails() {
		email = newForm()
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return err
	}
	spent, err := v.spentToday(v.who.ID, keys)
	if err != nil {
		return err
	}
	p := accountPage{Form: f, Email: email, Role: roleName(v.who.Role), Began: v.began(), Costs: costRange(networks)}
	p.Keys = fmt.Sprintf("%d of at most %d", usable(keys, time.Now()), v.dashboard.config.Accounts.MaxKeys(v.who))
	if p.allowance, err = v.togetherAllowance(spent); err != nil {
		return err
	}
	return v.show(max(statusOf(f), statusOf(email)), "account", "Account", p)
}

// changePassword takes the form of account.
func (v *visit) changePassword() error {
	f := passwordForm()
	f.read(v.r)
	if !f.ok() {
		return v.showAccount(f, emailForm())
	}
	session, err := v.dashboard.config.Accounts.ChangePassword(v.r.Context(), v.who.ID, f.value("present"), f.value("password"), client(v.r))
	switch {
	case errors.Is(err, account.ErrCredentials):
		f.fail("present", "This is not your current password.")
		return v.showAccount(f, emailForm())
	case err != nil:
		if err := f.refused(err); err != nil {
			return err
		}
		return v.showAccount(f, emailForm())
	}
	if err := v.begin(session); err != nil {
		return err
	}
	now, err := v.dashboard.config.Accounts.Find(v.who.ID.String())
	if err != nil {
		return err
	}
	v.sayDone("Your password has changed, and all other sessions have ended.", now.Unsaved)
	return v.redirect("/account")
}

// endSessions ends all other sessions of the account.
func (v *visit) endSessions() error {
	accounts := v.dashboard.config.Accounts
	ended, err := accounts.EndSessions(v.r.Context(), v.who.ID.String())
	if err != nil {
		return err
	}
	_, session, err := accounts.Begin(v.who.ID)
	if err != nil {
		return err
	}
	if err := v.begin(session); err != nil {
		return err
	}
	v.sayDone("All other sessions have ended.", ended.Unsaved)
	return v.redirect("/account")
}

func roleName(r account.Role) string {
	if r == account.RoleOperator {
		return "Operator"
	}
	return "User"
}

// accountLimits describes the limits of an account in a few words.
func accountLimits(l account.Limits) string {
	var parts []string
	if l.PerSecond > 0 {
		parts = append(parts, count(l.PerSecond)+" credits a second")
	}
	if l.PerDay > 0 {
		parts = append(parts, count(l.PerDay)+" credits a day")
	}
	if l.Keys > 0 {
		parts = append(parts, fmt.Sprintf("%s keys", count(l.Keys)))
	}
	if len(parts) == 0 {
		return "the service's defaults"
	}
	return strings.Join(parts, ", ")
}
