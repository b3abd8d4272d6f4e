package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// resetPage is the data of the template reset.
type resetPage struct {
	Form  *site.Form
	Token string // from the link; empty if the form asks for it
}

const FieldToken = "token"

// resetForm also asks for the token if the given one is not valid.
func resetForm(v *site.Visit, token string) resetPage {
	f := site.NewForm(site.PasswordField("New password"))
	_, err := v.Config.Accounts.Resetting(token)
	if err == nil {
		return resetPage{f, token}
	}
	asked := &site.Field{Name: FieldToken, Label: "Token", Kind: "text", Complete: "off", Value: token, Hint: "The token that the operator of this service sent you."}
	f.Fields = append([]*site.Field{asked}, f.Fields...)
	if token != "" {
		asked.Problem = site.Sentence(err.Error())
	}
	return resetPage{f, ""}
}

// showReset shows the form for a new password.
func showReset(v *site.Visit) error {
	p := resetForm(v, v.R.URL.Query().Get(FieldToken))
	return v.Show(site.StatusOf(p.Form), "reset", "Set a new password", p)
}

// wasReset handles the form of reset.
func wasReset(v *site.Visit) error {
	token := v.R.PostForm.Get(FieldToken)
	p := resetForm(v, token)
	p.Form.Read(v.R)
	if p.Form.OK() {
		owner, session, err := v.Config.Accounts.SetPassword(v.R.Context(), token, p.Form.Value("password"), site.Client(v.R))
		var needed *account.CodeNeeded
		if err == nil || errors.As(err, &needed) {
			v.SayEnded("Your password was set.", owner.ID, owner.Unsaved)
			return v.Enter(session, err, "/")
		}
		if errors.Is(err, account.ErrReset) || errors.Is(err, account.ErrDisabled) {
			p.Form.Fail(FieldToken, site.Sentence(err.Error()))
		} else if err := p.Form.Refused(err); err != nil {
			return err
		}
	}
	return v.Show(site.StatusOf(p.Form), "reset", "Set a new password", p)
}
