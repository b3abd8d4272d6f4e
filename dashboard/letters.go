package dashboard

import (
	"errors"

	"ashlar/account"
)

// mailedPage is the data of the template mailed. It is the same whether or not the address
// has an account.
type mailedPage struct {
	Email string
	IfAny bool   // the e-mail is sent only if the address has an account
	To    string // what the link in the e-mail is for, such as "set a new password"
}

// mailed asks the visitor to look for an e-mail.
func (v *visit) mailed(p mailedPage) error { return v.show(200, "mailed", "Check your e-mail", p) }

// tokenPage is the data of the templates confirm and address.
type tokenPage struct {
	Form   *form // nil if the token is not valid
	Token  string
	Email  string
	Wrong  string // why the token is not valid
	Before string // the account's present address, for address
}

// confirmation shows the form for the password of a new account, to which an e-mail leads.
func (v *visit) confirmation() error {
	return v.showConfirmation(v.r.URL.Query().Get(fieldToken), newForm(passwordField("Password")))
}

func (v *visit) showConfirmation(token string, f *form) error {
	p := tokenPage{Form: f, Token: token}
	var err error
	if p.Email, err = v.dashboard.config.Accounts.Registering(token); err != nil {
		p.Form, p.Wrong = nil, sentence(err.Error())
	}
	return v.show(statusOf(f), "confirm", "Create an account", p)
}

// confirmed handles the form of confirmation.
func (v *visit) confirmed() error {
	token, f := v.r.PostForm.Get(fieldToken), newForm(passwordField("Password"))
	f.read(v.r)
	if f.ok() {
		err := v.register(account.Registrant{Token: token, Password: f.value("password"), Address: client(v.r)})
		switch {
		case err == nil:
			return v.redirect("/")
		case errors.Is(err, account.ErrReset), errors.Is(err, account.ErrClosed), errors.Is(err, account.ErrNoInvitation):
			f.Problem = sentence(err.Error())
		default:
			if err := f.refused(err); err != nil {
				return err
			}
		}
	}
	return v.showConfirmation(token, f)
}

func forgotForm() *form {
	return newForm(&field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"})
}

// forgot shows the form that requests an e-mail to set a new password.
func (v *visit) forgot() error {
	if !v.dashboard.config.Accounts.Mails() {
		return errNoPage
	}
	return v.show(200, "forgot", "Forgotten password", forgotForm())
}

// hasForgotten handles the form of forgot.
func (v *visit) hasForgotten() error {
	if !v.dashboard.config.Accounts.Mails() {
		return errNoPage
	}
	f := forgotForm()
	f.read(v.r)
	if f.ok() {
		email := f.value("email")
		err := v.dashboard.config.Accounts.RequestReset(v.r.Context(), email, client(v.r))
		if err == nil {
			return v.mailed(mailedPage{Email: email, IfAny: true, To: "set a new password"})
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return v.show(statusOf(f), "forgot", "Forgotten password", f)
}

// emailForm asks for a new e-mail address. Its fields have names of their own, because the
// form for the password is on the same page.
func emailForm() *form {
	return newForm(
		&field{Name: "new-email", Label: "New e-mail address", Kind: "email", Complete: "email", Hint: "You will receive an e-mail with a link to confirm it."},
		&field{Name: "email-password", Label: "Current password", Kind: kindSecret, Complete: "current-password"},
	)
}

// changeEmail handles the form for another e-mail address.
func (v *visit) changeEmail() error {
	accounts := v.dashboard.config.Accounts
	if !accounts.Mails() {
		return errNoPage
	}
	f := emailForm()
	f.read(v.r)
	if !f.ok() {
		return v.showAccount(passwordForm(), f)
	}
	email := f.value("new-email")
	err := accounts.RequestChange(v.r.Context(), v.who.ID, f.value("email-password"), email, client(v.r))
	var wrong *account.Invalid
	switch {
	case err == nil:
		return v.mailed(mailedPage{Email: email, To: "confirm the address"})
	case errors.Is(err, account.ErrCredentials):
		f.fail("email-password", "This is not your current password.")
	case errors.As(err, &wrong):
		f.fail("new-email", sentence(wrong.Problem))
	default:
		return err
	}
	return v.showAccount(passwordForm(), f)
}

// newAddress asks to confirm another e-mail address. A form does it, because mail programs
// follow links on their own.
func (v *visit) newAddress() error {
	return v.showNewAddress(v.r.URL.Query().Get(fieldToken), newForm())
}

func (v *visit) showNewAddress(token string, f *form) error {
	p := tokenPage{Form: f, Token: token}
	owner, email, err := v.dashboard.config.Accounts.Changing(token)
	if err != nil {
		p.Form, p.Wrong = nil, sentence(err.Error())
	}
	p.Before, p.Email = owner.Email, email
	return v.show(statusOf(f), "address", "Confirm your new address", p)
}

// confirmAddress handles the form of newAddress.
func (v *visit) confirmAddress() error {
	token, f := v.r.PostForm.Get(fieldToken), newForm()
	changed, err := v.dashboard.config.Accounts.ConfirmChange(v.r.Context(), token, client(v.r))
	if errors.Is(err, account.ErrReset) {
		return v.showNewAddress(token, f)
	}
	if err != nil {
		return err
	}
	v.say("From now on, sign in with " + changed.Email + ".")
	if v.who == nil {
		return v.redirect("/signin")
	}
	return v.redirect("/account")
}
