package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

func codeForm() *site.Form {
	return site.NewForm(&site.Field{
		Name: "code", Label: "Code", Kind: "text", Complete: "one-time-code",
		Hint: "The six digits that your authenticator app shows, or one of your recovery codes.",
	})
}

// showCode asks for a code of the second factor, once the first is proved.
func showCode(v *site.Visit) error {
	if pending, _ := v.Pending(); pending == "" {
		return v.Redirect("/signin")
	}
	return v.Show(200, "code", "Second factor", codeForm())
}

// takeCode handles the form of showCode.
func takeCode(v *site.Visit) error {
	pending, next := v.Pending()
	f := codeForm()
	f.Read(v.R)
	if f.OK() {
		_, session, err := v.Config.Accounts.Confirm(v.R.Context(), pending, f.Value("code"), site.Client(v.R))
		switch {
		case errors.Is(err, account.ErrSession):
			v.Say("That took too long. Please sign in again.")
			return v.Redirect("/signin")
		case !errors.Is(err, account.ErrCode):
			return v.Enter(session, err, next)
		}
		f.Fail("code", site.Sentence(err.Error()))
	}
	return v.Show(site.StatusOf(f), "code", "Second factor", f)
}
