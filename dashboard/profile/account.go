// Package profile serves the pages with which users manage their own accounts.
package profile

import (
	"cmp"
	"errors"
	"time"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForUsers("GET /account", show),
		site.ForUsers("POST /account/password", changePassword),
		site.ForUsers("POST /account/email", changeEmail),
		site.ForUsers("POST /account/provider/remove", disconnect),
		site.ForUsers("GET /account/factor", showFactor),
		site.ForUsers("POST /account/factor", enrol),
		site.ForUsers("POST /account/factor/recovery", renewRecovery),
		site.ForUsers("POST /account/factor/remove", removeFactor),
		site.ForUsers("GET /account/passkeys", listPasskeys),
		site.ForUsers("POST /account/passkeys", addPasskey),
		site.ForUsers("POST /account/passkeys/made", takeMadePasskey),
		site.ForUsers("POST /account/passkeys/remove", removePasskey),
		site.ForUsers("GET /account/tokens", listTokens),
		site.ForUsers("POST /account/tokens", createToken),
		site.ForUsers("GET /account/tokens/{token}/revoke", askRevocation),
		site.ForUsers("POST /account/tokens/{token}/revoke", revokeToken),
		site.ForUsers("POST /account/sessions", endSessions),
		site.ForUsers("GET /account/delete", showDeletion),
		site.ForUsers("POST /account/delete", deleteAccount),
	}
}

// accountPage is the data of the template account.
type accountPage struct {
	Form     *site.Form
	Email    *site.Form // to change the address; no fields where addresses are not verified
	Provider *site.Form // to connect or disconnect the provider
	Linked   bool       // the account is connected to the provider that the service has now
	Role     string
	Began    time.Time // when the session began
	Keys     string    // how many there are, and may be
	Costs    string
	keys.Allowance
}

func passwordForm() *site.Form {
	return site.NewForm(
		&site.Field{Name: "present", Label: "Current password", Kind: site.KindSecret, Complete: "current-password"},
		site.PasswordField("New password"),
	)
}

func show(v *site.Visit) error { return showAccount(v, accountForms{}) }

// accountForms are the forms of the page; nil: as they are at first.
type accountForms struct{ password, email, provider *site.Form }

func showAccount(v *site.Visit, forms accountForms) error {
	forms.password = cmp.Or(forms.password, passwordForm())
	forms.email = cmp.Or(forms.email, emailForm())
	forms.provider = cmp.Or(forms.provider, disconnectForm())
	if !v.Config.Accounts.Mails() {
		forms.email = site.NewForm()
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return err
	}
	spent, err := keys.SpentToday(v, v.Who.ID, own)
	if err != nil {
		return err
	}
	p := accountPage{Form: forms.password, Email: forms.email, Provider: forms.provider, Role: roleName(v.Who.Role), Began: v.Began(), Costs: site.CostRange(networks)}
	p.Linked = v.Config.Provider != nil && v.Who.Provider == v.Config.Provider.Issuer()
	p.Keys = site.Count(keys.Usable(own, time.Now())) + " of at most " + site.Count(v.Config.Accounts.MaxKeys(v.Who))
	if p.Allowance, err = keys.TogetherAllowance(v, spent); err != nil {
		return err
	}
	return v.Show(max(site.StatusOf(forms.password), site.StatusOf(forms.email), site.StatusOf(forms.provider)), "account", "Account", p)
}

// changePassword takes the form of account.
func changePassword(v *site.Visit) error {
	f := passwordForm()
	f.Read(v.R)
	if !f.OK() {
		return showAccount(v, accountForms{password: f})
	}
	session, err := v.Config.Accounts.ChangePassword(v.R.Context(), v.Who.ID, f.Value("present"), f.Value("password"), site.Client(v.R))
	switch {
	case errors.Is(err, account.ErrCredentials):
		f.Fail("present", "This is not your current password.")
		return showAccount(v, accountForms{password: f})
	case err != nil:
		if err := f.Refused(err); err != nil {
			return err
		}
		return showAccount(v, accountForms{password: f})
	}
	if err := v.Continue(session); err != nil {
		return err
	}
	now, err := v.Config.Accounts.Find(v.Who.ID.String())
	if err != nil {
		return err
	}
	v.SayEnded("Your password has changed, and all other sessions have ended.", now.ID, now.Unsaved)
	return v.Redirect("/account")
}

// endSessions ends all other sessions of the account.
func endSessions(v *site.Visit) error {
	ended, session, err := v.Config.Accounts.EndSessions(v.R.Context(), v.Session)
	if err != nil {
		return err
	}
	if err := v.Continue(session); err != nil {
		return err
	}
	v.SayEnded("All other sessions have ended.", ended.ID, ended.Unsaved)
	return v.Redirect("/account")
}

func roleName(r account.Role) string {
	if r == account.RoleOperator {
		return "Operator"
	}
	return "User"
}

// emailForm asks for a new e-mail address. Its fields have names of their own, because the
// form for the password is on the same page.
func emailForm() *site.Form {
	return site.NewForm(
		&site.Field{Name: "new-email", Label: "New e-mail address", Kind: "email", Complete: "email", Hint: "You will receive an e-mail with a link to confirm it."},
		&site.Field{Name: "email-password", Label: "Current password", Kind: site.KindSecret, Complete: "current-password"},
	)
}

// changeEmail handles the form for another e-mail address.
func changeEmail(v *site.Visit) error {
	accounts := v.Config.Accounts
	if !accounts.Mails() {
		return site.ErrNoPage
	}
	f := emailForm()
	f.Read(v.R)
	if !f.OK() {
		return showAccount(v, accountForms{email: f})
	}
	email := f.Value("new-email")
	err := accounts.RequestChange(v.R.Context(), v.Who.ID, f.Value("email-password"), email, site.Client(v.R))
	var wrong *account.Invalid
	switch {
	case err == nil:
		return v.ShowMailed(site.MailedPage{Email: email, To: "confirm the address"})
	case errors.Is(err, account.ErrCredentials):
		f.Fail("email-password", "This is not your current password.")
	case errors.As(err, &wrong):
		f.Fail("new-email", site.Sentence(wrong.Problem))
	default:
		return err
	}
	return showAccount(v, accountForms{email: f})
}
