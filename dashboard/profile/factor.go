package profile

import (
	"errors"
	"html/template"

	"ashlar/account"
	"ashlar/account/totp"
	"ashlar/dashboard/site"
)

// factorPage is the data of the template factor.
type factorPage struct {
	Secret  totp.Secret   // of the app to add; empty if the account has one
	QR      template.HTML // of the secret
	Enrol   *site.Form
	Renew   *site.Form
	Remove  *site.Form
	Codes   []string // the recovery codes just made; else empty
	Passkey string   // options to use a passkey of the account; empty: it has none
}

// The prefixes of the fields that prove who the user is.
const (
	prefixAdd    = "add-"
	prefixRenew  = "renew-"
	prefixRemove = "remove-"
)

// enrolForm asks for a code of the new app.
func enrolForm(v *site.Visit) *site.Form {
	f := site.NewForm(&site.Field{Name: "code", Label: "Code of the app", Kind: "text", Complete: "one-time-code", Hint: "The six digits that the app shows now."})
	f.Fields = append(f.Fields, v.ProofFields(prefixAdd)...)
	return f
}

func confirmForm(v *site.Visit, prefix string) *site.Form {
	return site.NewForm(v.ProofFields(prefix)...)
}

// showFactor offers to add an authenticator app, or to remove the one that the account has.
func showFactor(v *site.Visit) error { return showFactorPage(v, factorPage{}) }

func showFactorPage(v *site.Visit, p factorPage) error {
	forms := []**site.Form{&p.Enrol, &p.Renew, &p.Remove}
	status := 200
	for i, fresh := range []*site.Form{enrolForm(v), confirmForm(v, prefixRenew), confirmForm(v, prefixRemove)} {
		if *forms[i] == nil {
			*forms[i] = fresh
		}
		status = max(status, site.StatusOf(*forms[i]))
	}
	var err error
	if !v.Who.App {
		if p.Secret.Check() != nil {
			p.Secret = totp.NewSecret()
		}
		if p.QR, err = qrCode(p.Secret.URL(v.R.Host, v.Who.Email), "QR code with the secret that is also shown as text"); err != nil {
			return err
		}
	}
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(status, "factor", "Second factor", p)
}

// enrol adds an authenticator app. Only this answer shows the recovery codes.
func enrol(v *site.Visit) error {
	secret := totp.Secret(v.R.PostForm.Get("secret")) // that the page with the form showed
	f := v.ReadProven(enrolForm(v), prefixAdd)
	var codes []string
	var session account.Session
	added, err := f.Act(func(by account.Reproof) (err error) {
		codes, session, err = v.Config.Accounts.Enrol(v.R.Context(), v.Who.ID, secret, f.Value("code"), by)
		var invalid *account.Invalid
		if errors.As(err, &invalid) { // about the new code
			err = f.Refused(err)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !added:
		return showFactorPage(v, factorPage{Secret: secret, Enrol: f.Form})
	}
	if err := v.Continue(session); err != nil {
		return err
	}
	return showCodes(v, codes)
}

// renewRecovery replaces the recovery codes. Only this answer shows the new ones.
func renewRecovery(v *site.Visit) error {
	f := v.ReadProven(confirmForm(v, prefixRenew), prefixRenew)
	var codes []string
	renewed, err := f.Act(func(by account.Reproof) (err error) {
		codes, err = v.Config.Accounts.RenewRecovery(v.R.Context(), v.Who.ID, by)
		return err
	})
	switch {
	case err != nil:
		return err
	case !renewed:
		return showFactorPage(v, factorPage{Renew: f.Form})
	}
	return showCodes(v, codes)
}

// showCodes shows new recovery codes with the account's current state.
func showCodes(v *site.Visit, codes []string) error {
	now, err := v.Config.Accounts.Find(v.Who.ID.String())
	if err != nil {
		return err
	}
	v.Who = &now
	return showFactorPage(v, factorPage{Codes: codes})
}

// removeFactor removes the authenticator app.
func removeFactor(v *site.Visit) error {
	f := v.ReadProven(confirmForm(v, prefixRemove), prefixRemove)
	var changed account.Account
	removed, err := f.Act(func(by account.Reproof) (err error) {
		changed, err = v.Config.Accounts.Unenrol(v.R.Context(), v.Who.ID, by)
		return err
	})
	switch {
	case err != nil:
		return err
	case !removed:
		return showFactorPage(v, factorPage{Remove: f.Form})
	}
	v.SayDone("The authenticator app was removed.", changed.Unsaved)
	return v.Redirect("/account")
}
