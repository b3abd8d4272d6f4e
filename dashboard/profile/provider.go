package profile

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// disconnectForm asks for the password, which is needed to sign in without the provider.
func disconnectForm() *site.Form {
	return site.NewForm(&site.Field{Name: "provider-password", Label: "Current password", Kind: site.KindSecret, Complete: "current-password"})
}

// disconnect ends the link of the account to the sign-in provider.
func disconnect(v *site.Visit) error {
	f := disconnectForm()
	f.Read(v.R)
	if f.OK() {
		changed, err := v.Config.Accounts.Unlink(v.R.Context(), v.Who.ID, f.Value("provider-password"), site.Client(v.R))
		var invalid *account.Invalid
		switch {
		case err == nil:
			v.SayDone("The provider was disconnected.", changed.Unsaved)
			return v.Redirect("/account")
		case errors.Is(err, account.ErrCredentials):
			f.Fail("provider-password", "This is not your current password.")
		case errors.As(err, &invalid):
			f.Problem = site.Sentence(invalid.Problem)
		default:
			return err
		}
	}
	return showAccount(v, accountForms{provider: f})
}
