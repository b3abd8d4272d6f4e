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
	Secret totp.Secret   // of the device to add; empty if the account has one
	QR     template.HTML // of the secret
	Enrol  *site.Form
	Renew  *site.Form
	Remove *site.Form
	Codes  []string // the recovery codes just made; else empty
}

// enrolForm asks for a code of the new device, and for the password of accounts that have one.
func enrolForm(v *site.Visit) *site.Form {
	return factorForm(v, "", "The six digits that the app shows now.")
}

// confirmForm asks for a code and the password. Its fields begin with a prefix, because a page
// has two of them.
func confirmForm(v *site.Visit, prefix string) *site.Form {
	return factorForm(v, prefix, "Of your authenticator app, or a recovery code.")
}

func factorForm(v *site.Visit, prefix, hint string) *site.Form {
	f := site.NewForm(&site.Field{Name: prefix + "code", Label: "Code", Kind: "text", Complete: "one-time-code", Hint: hint})
	if v.Who.Password {
		f.Fields = append(f.Fields, &site.Field{Name: prefix + "password", Label: "Current password", Kind: site.KindSecret, Complete: "current-password"})
	}
	return f
}

// showFactor offers to add a second factor, or to remove the one that the account has.
func showFactor(v *site.Visit) error { return showFactorPage(v, factorPage{}) }

func showFactorPage(v *site.Visit, p factorPage) error {
	forms := []**site.Form{&p.Enrol, &p.Renew, &p.Remove}
	status := 200
	for i, fresh := range []*site.Form{enrolForm(v), confirmForm(v, "renew-"), confirmForm(v, "remove-")} {
		if *forms[i] == nil {
			*forms[i] = fresh
		}
		status = max(status, site.StatusOf(*forms[i]))
	}
	if v.Who.SecondFactor.IsZero() {
		if p.Secret.Check() != nil {
			p.Secret = totp.NewSecret()
		}
		var err error
		if p.QR, err = qrCode(p.Secret.URL(v.R.Host, v.Who.Email), "QR code with the secret that is also shown as text"); err != nil {
			return err
		}
	}
	return v.Show(status, "factor", "Second factor", p)
}

// enrol adds a second factor. Only this answer shows the recovery codes.
func enrol(v *site.Visit) error {
	secret := totp.Secret(v.R.PostForm.Get("secret")) // that the page with the form showed
	f := enrolForm(v)
	f.Read(v.R)
	if !f.OK() {
		return showFactorPage(v, factorPage{Secret: secret, Enrol: f})
	}
	codes, session, err := v.Config.Accounts.Enrol(v.R.Context(), v.Who.ID, secret, f.Value("code"), f.Value("password"), site.Client(v.R))
	if err != nil {
		if err := factorRefused(f, "", err); err != nil {
			return err
		}
		return showFactorPage(v, factorPage{Secret: secret, Enrol: f})
	}
	if err := v.Begin(session); err != nil {
		return err
	}
	return showCodes(v, codes)
}

// renewRecovery replaces the recovery codes. Only this answer shows the new ones.
func renewRecovery(v *site.Visit) error {
	f := confirmForm(v, "renew-")
	f.Read(v.R)
	if !f.OK() {
		return showFactorPage(v, factorPage{Renew: f})
	}
	codes, err := v.Config.Accounts.RenewRecovery(v.R.Context(), v.Who.ID, f.Value("renew-code"), f.Value("renew-password"), site.Client(v.R))
	if err != nil {
		if err := factorRefused(f, "renew-", err); err != nil {
			return err
		}
		return showFactorPage(v, factorPage{Renew: f})
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

// removeFactor removes the second factor.
func removeFactor(v *site.Visit) error {
	f := confirmForm(v, "remove-")
	f.Read(v.R)
	if !f.OK() {
		return showFactorPage(v, factorPage{Remove: f})
	}
	changed, err := v.Config.Accounts.Unenrol(v.R.Context(), v.Who.ID, f.Value("remove-code"), f.Value("remove-password"), site.Client(v.R))
	if err != nil {
		if err := factorRefused(f, "remove-", err); err != nil {
			return err
		}
		return showFactorPage(v, factorPage{Remove: f})
	}
	v.SayDone("The second factor was removed.", changed.Unsaved)
	return v.Redirect("/account")
}

// factorRefused records a wrong code or password as a problem with its field, and returns any
// other error.
func factorRefused(f *site.Form, prefix string, err error) error {
	var invalid *account.Invalid
	switch {
	case errors.Is(err, account.ErrCredentials):
		f.Fail(prefix+"password", "This is not your current password.")
	case errors.Is(err, account.ErrCode):
		f.Fail(prefix+"code", site.Sentence(err.Error()))
	case errors.As(err, &invalid):
		f.Fail(prefix+string(invalid.Field), site.Sentence(invalid.Problem))
	default:
		return err
	}
	return nil
}
