// Package signin serves the pages with which visitors sign in, sign up and set passwords.
package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAll("GET /signin", signIn),
		site.ForAll("POST /signin", signedIn),
		site.ForAll("GET /signin/code", showCode),
		site.ForAll("POST /signin/code", takeCode),
		site.ForAll("POST /signin/passkey", askPasskey),
		site.ForAll("POST /signin/passkey/answer", takePasskey),
		site.ForAll("GET /signin/provider", toProvider),
		site.ForAll("GET "+callback, fromProvider),
		site.ForUsers("POST /account/provider", connect),
		site.ForAll("POST /signout", signOut),
		site.ForAll("GET /signup", signUp),
		site.ForAll("POST /signup", signedUp),
		site.ForAll("GET /signup/confirm", confirmation),
		site.ForAll("POST /signup/confirm", confirmed),
		site.ForAll("GET /forgot", showForgot),
		site.ForAll("POST /forgot", hasForgotten),
		site.ForAll("GET /account/confirm", newAddress),
		site.ForAll("POST /account/confirm", confirmAddress),
		site.ForAll("GET /setup", showSetUpOf),
		site.ForAll("POST /setup", wasSetUp),
		site.ForAll("GET /reset", showReset),
		site.ForAll("POST /reset", wasReset),
	}
}

// signInPage is the data of the template signin.
type signInPage struct {
	Form *site.Form
	Next string // path to redirect to
	// Passkeys says that browsers support them on this page.
	Passkeys bool
}

func signInForm() *site.Form {
	return site.NewForm(
		&site.Field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"},
		&site.Field{Name: "password", Label: "Password", Kind: site.KindSecret, Complete: "current-password"},
	)
}

func signIn(v *site.Visit) error {
	next := site.Local(v.R.URL.Query().Get("next"))
	if v.Who != nil {
		return v.Redirect(next)
	}
	return showSignIn(v, signInForm(), next)
}

func showSignIn(v *site.Visit, f *site.Form, next string) error {
	_, err := v.PasskeySite()
	return v.Show(site.StatusOf(f), "signin", "Sign in", signInPage{f, next, err == nil})
}

// signedIn handles the form of signIn.
func signedIn(v *site.Visit) error {
	f, next := signInForm(), site.Local(v.R.PostForm.Get("next"))
	f.Read(v.R)
	if f.OK() {
		_, session, err := v.Config.Accounts.SignIn(v.R.Context(), f.Value("email"), f.Value("password"), site.Client(v.R))
		if !errors.Is(err, account.ErrCredentials) && !errors.Is(err, account.ErrDisabled) {
			return v.Enter(session, err, next)
		}
		f.Problem = site.Sentence(err.Error())
	}
	return showSignIn(v, f, next)
}

// signOut ends the session.
func signOut(v *site.Visit) error {
	if err := v.Sessions.Destroy(v.R.Context()); err != nil {
		return err
	}
	return v.Redirect("/")
}
