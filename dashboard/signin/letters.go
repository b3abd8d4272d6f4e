package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// tokenPage is the data of the templates confirm and address.
type tokenPage struct {
	Form   *site.Form // nil if the token is not valid
	Token  string
	Email  string
	Wrong  string // why the token is not valid
	Before string // the account's present address, for address
}

// confirmation shows the form for the password of a new account, to which an e-mail leads.
func confirmation(v *site.Visit) error {
	return showConfirmation(v, v.R.URL.Query().Get(FieldToken), site.NewForm(site.PasswordField("Password")))
}

func showConfirmation(v *site.Visit, token string, f *site.Form) error {
	p := tokenPage{Form: f, Token: token}
	var err error
	if p.Email, err = v.Config.Accounts.Registering(token); err != nil {
		p.Form, p.Wrong = nil, site.Sentence(err.Error())
	}
	return v.Show(site.StatusOf(f), "confirm", "Create an account", p)
}

// confirmed handles the form of confirmation.
func confirmed(v *site.Visit) error {
	token, f := v.R.PostForm.Get(FieldToken), site.NewForm(site.PasswordField("Password"))
	f.Read(v.R)
	if f.OK() {
		err := register(v, account.Registrant{Token: token, Password: f.Value("password"), Address: site.Client(v.R)})
		switch {
		case err == nil:
			return v.Redirect("/")
		case errors.Is(err, account.ErrReset), errors.Is(err, account.ErrClosed), errors.Is(err, account.ErrNoInvitation):
			f.Problem = site.Advised(err)
		default:
			if err := f.Refused(err); err != nil {
				return err
			}
		}
	}
	return showConfirmation(v, token, f)
}

func forgotForm() *site.Form {
	return site.NewForm(&site.Field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"})
}

// showForgot shows the form that requests an e-mail to set a new password.
func showForgot(v *site.Visit) error {
	if !v.Config.Accounts.Mails() {
		return site.ErrNoPage
	}
	return v.Show(200, "forgot", "Forgotten password", forgotForm())
}

// hasForgotten handles the form of forgot.
func hasForgotten(v *site.Visit) error {
	if !v.Config.Accounts.Mails() {
		return site.ErrNoPage
	}
	f := forgotForm()
	f.Read(v.R)
	if f.OK() {
		email := f.Value("email")
		err := v.Config.Accounts.RequestReset(v.R.Context(), email, site.Client(v.R))
		if err == nil {
			return v.ShowMailed(site.MailedPage{Email: email, IfAny: true, To: "set a new password"})
		}
		if err := f.Refused(err); err != nil {
			return err
		}
	}
	return v.Show(site.StatusOf(f), "forgot", "Forgotten password", f)
}

// newAddress asks to confirm another e-mail address. A form does it, because mail programs
// follow links on their own.
func newAddress(v *site.Visit) error {
	return showNewAddress(v, v.R.URL.Query().Get(FieldToken), site.NewForm())
}

func showNewAddress(v *site.Visit, token string, f *site.Form) error {
	p := tokenPage{Form: f, Token: token}
	owner, email, err := v.Config.Accounts.Changing(token)
	if err != nil {
		p.Form, p.Wrong = nil, site.Sentence(err.Error())
	}
	p.Before, p.Email = owner.Email, email
	return v.Show(site.StatusOf(f), "address", "Confirm your new address", p)
}

// confirmAddress handles the form of newAddress.
func confirmAddress(v *site.Visit) error {
	token, f := v.R.PostForm.Get(FieldToken), site.NewForm()
	changed, err := v.Config.Accounts.ConfirmChange(v.R.Context(), token, site.Client(v.R))
	if errors.Is(err, account.ErrReset) {
		return showNewAddress(v, token, f)
	}
	if err != nil {
		return err
	}
	v.Say("From now on, sign in with " + changed.Email + ".")
	if v.Who == nil {
		return v.Redirect("/signin")
	}
	return v.Redirect("/account")
}
