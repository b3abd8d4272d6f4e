package signin

import (
	"errors"

	"ashlar/account/passkey"
	"ashlar/dashboard/site"
)

// passkeyPage is the data of the template passkey.
type passkeyPage struct {
	Options string // for the browser; empty if it cannot be asked
	Next    string // path to redirect to
	Problem string
}

// askPasskey asks for a passkey, instead of an address and a password.
func askPasskey(v *site.Visit) error {
	next := site.Local(v.R.PostForm.Get("next"))
	if err := v.Config.Accounts.MayBegin(site.Client(v.R)); err != nil {
		return err
	}
	p := passkeyPage{Next: next}
	var err error
	if p.Options, err = v.AskAnyPasskey(); errors.Is(err, passkey.ErrSite) {
		return passkeyRefused(v, next, err)
	}
	if err != nil {
		return err
	}
	return v.Show(200, "passkey", "Sign in with a passkey", p)
}

// takePasskey handles the form of askPasskey.
func takePasskey(v *site.Visit) error {
	next := site.Local(v.R.PostForm.Get("next"))
	answer, err := v.PasskeyAnswer()
	if err == nil && answer == nil {
		err = passkey.ErrAnswer
	}
	if err != nil {
		return passkeyRefused(v, next, err)
	}
	_, session, err := v.Config.Accounts.SignInWithPasskey(v.R.Context(), answer, site.Client(v.R))
	if err != nil {
		return passkeyRefused(v, next, err)
	}
	return v.Enter(session, nil, next)
}

// passkeyRefused explains why a passkey is refused.
func passkeyRefused(v *site.Visit, next string, err error) error {
	problem, ok := site.PasskeyProblem(err)
	if !ok {
		return err
	}
	if errors.Is(err, passkey.ErrAnswer) {
		v.Config.Log.InfoContext(v.R.Context(), "an answer of a passkey is refused", "error", err)
	}
	return v.Show(422, "passkey", "Sign in with a passkey", passkeyPage{Next: next, Problem: problem})
}
