package signin

import (
	"encoding/json"
	"errors"
	"net/http"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/dashboard/site"
)

// callback is the path to which the provider sends users back.
const callback = "/signin/provider/back"

// sessionAttempt is the key of a session's sign-in with the provider, an attempt as JSON.
const sessionAttempt = "attempt"

// attempt is a sign-in with the provider that has begun.
type attempt struct {
	oidc.Attempt
	Next string // path to redirect to
	Link string // ID of the account to be connected; empty to sign in
}

// providerPage is the data of the template provider.
type providerPage struct {
	Name    string
	URL     string // at which the user continues; empty if that is not possible
	Problem string
}

// connectTitle is the title of the pages that connect an account.
const connectTitle = "Connect your account"

// signInTitle is the title of the pages that sign in.
func signInTitle(v *site.Visit) string { return "Sign in with " + v.Config.Provider.Name() }

// toProvider sends the visitor to the provider. It is a link and no form, because browsers let
// no form lead to another site.
func toProvider(v *site.Visit) error {
	next := site.Local(v.R.URL.Query().Get("next"))
	if v.Who != nil {
		return v.Redirect(next)
	}
	if v.Config.Provider == nil {
		return site.ErrNoPage
	}
	if err := v.Config.Accounts.MayBegin(site.Client(v.R)); err != nil {
		return err
	}
	to, err := beginAttempt(v, attempt{Next: next})
	if err != nil {
		return providerFailed(v, signInTitle(v), err)
	}
	return v.Redirect(to)
}

// connect begins to connect the visitor's account to the provider. The answer has a link to it.
// A form does this, so that no other site can connect an account.
func connect(v *site.Visit) error {
	if v.Config.Provider == nil {
		return site.ErrNoPage
	}
	if err := v.Fresh(); err != nil {
		return providerFailed(v, connectTitle, err)
	}
	err := v.Config.Accounts.MayLink(v.R.Context(), v.Who.ID, v.R.PostForm.Get("provider-password"), site.Client(v.R))
	if errors.Is(err, account.ErrCredentials) {
		p := providerPage{Name: v.Config.Provider.Name(), Problem: "This is not your current password."}
		return v.Show(http.StatusUnprocessableEntity, "provider", connectTitle, p)
	}
	if err != nil {
		return err
	}
	to, err := beginAttempt(v, attempt{Next: "/account", Link: v.Who.ID.String()})
	if err != nil {
		return providerFailed(v, connectTitle, err)
	}
	return v.Show(200, "provider", connectTitle, providerPage{Name: v.Config.Provider.Name(), URL: to})
}

// beginAttempt begins a sign-in, stores it in the session, and returns where it continues.
func beginAttempt(v *site.Visit, a attempt) (to string, err error) {
	if a.Attempt, to, err = v.Config.Provider.Begin(v.R.Context(), site.Scheme(v.R)+"://"+v.R.Host+callback); err != nil {
		return "", err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	v.Sessions.Put(v.R.Context(), sessionAttempt, string(text))
	return to, nil
}

// fromProvider takes the visitor back from the provider.
func fromProvider(v *site.Visit) error {
	if v.Config.Provider == nil {
		return site.ErrNoPage
	}
	ctx := v.R.Context()
	var a attempt // an empty one matches no answer
	if text := v.Sessions.GetString(ctx, sessionAttempt); text != "" {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return err
		}
	}
	title := v.Config.Provider.Name() // what an answer without an attempt was for is not known
	if a.Matches(v.R.URL.Query()) {   // else the attempt may go on in another tab
		v.Sessions.Remove(ctx, sessionAttempt)
		if title = connectTitle; a.Link == "" {
			title = signInTitle(v)
		}
	}
	who, err := v.Config.Provider.Finish(ctx, a.Attempt, v.R.URL.Query())
	if err != nil {
		return providerFailed(v, title, err)
	}
	if a.Link != "" {
		return connected(v, &a, who)
	}
	_, session, err := v.Config.Accounts.Arrive(v.R.Context(), who, v.Config.Provided)
	for _, known := range []error{account.ErrNotLinked, account.ErrNotProvided, account.ErrUnverified, account.ErrDisabled} {
		if errors.Is(err, known) {
			return providerFailed(v, title, err)
		}
	}
	return v.Enter(session, err, site.Local(a.Next))
}

// connected connects the account that began the attempt. The user may have been at the provider for
// long, so what connect checked is checked again, but for the password.
func connected(v *site.Visit, a *attempt, who oidc.Identity) error {
	if v.Who == nil || v.Who.ID.String() != a.Link {
		return providerFailed(v, connectTitle, oidc.ErrRefused)
	}
	if err := v.Fresh(); err != nil {
		return providerFailed(v, connectTitle, err)
	}
	var invalid *account.Invalid
	_, err := v.Config.Accounts.Link(v.R.Context(), v.Session, who)
	switch {
	case errors.Is(err, account.ErrSession): // it ended while the provider was asked
		return providerFailed(v, connectTitle, oidc.ErrRefused)
	case errors.As(err, &invalid):
		return providerFailed(v, connectTitle, err)
	case err != nil:
		return err
	}
	v.Say("You can now sign in with " + v.Config.Provider.Name() + ".")
	return v.Redirect(site.Local(a.Next))
}

// providerFailed explains why signing in with the provider, or connecting an account to it, failed. What the
// provider answered is in the log only.
func providerFailed(v *site.Visit, title string, err error) error {
	p := providerPage{Name: v.Config.Provider.Name()}
	status := http.StatusForbidden
	switch {
	case errors.Is(err, oidc.ErrProvider):
		v.Config.Log.WarnContext(v.R.Context(), "sign-in with the provider failed", "error", err)
		p.Problem, status = p.Name+" does not answer as expected. Try again later, or sign in with your password.", http.StatusBadGateway
	case errors.Is(err, oidc.ErrRefused):
		v.Config.Log.InfoContext(v.R.Context(), "sign-in with the provider refused", "error", err)
		p.Problem = p.Name + " did not confirm who you are, or it took too long. Try again."
	default:
		p.Problem = site.Sentence(err.Error())
	}
	return v.Show(status, "provider", title, p)
}
