package dashboard

import (
	"errors"

	"ashlar/account"
)

// signInPage is the data of the template signin.
type signInPage struct {
	Form *form
	Next string // path to redirect to
}

func signInForm() *form {
	return newForm(
		&field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"},
		&field{Name: "password", Label: "Password", Kind: kindSecret, Complete: "current-password"},
	)
}

func (v *visit) signIn() error {
	next := local(v.r.URL.Query().Get("next"))
	if v.who != nil {
		return v.redirect(next)
	}
	return v.show(200, "signin", "Sign in", signInPage{signInForm(), next})
}

// signedIn handles the form of signIn.
func (v *visit) signedIn() error {
	f, next := signInForm(), local(v.r.PostForm.Get("next"))
	f.read(v.r)
	if f.ok() {
		_, session, err := v.dashboard.config.Accounts.SignIn(v.r.Context(), f.value("email"), f.value("password"), client(v.r))
		switch {
		case err == nil:
			if err := v.begin(session); err != nil {
				return err
			}
			return v.redirect(next)
		case errors.Is(err, account.ErrCredentials), errors.Is(err, account.ErrDisabled):
			f.Problem = sentence(err.Error())
		default:
			return err
		}
	}
	return v.show(statusOf(f), "signin", "Sign in", signInPage{f, next})
}

// signOut ends the session.
func (v *visit) signOut() error {
	if err := v.sessions.Destroy(v.r.Context()); err != nil {
		return err
	}
	return v.redirect("/")
}
