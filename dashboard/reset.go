package dashboard

import (
	"errors"

	"ashlar/account"
)

// resetPage is the data of the template reset.
type resetPage struct {
	Form  *form
	Token string // from the link; empty if the form asks for it
}

const fieldToken = "token"

// resetForm also asks for the token if the given one is not valid.
func (v *visit) resetForm(token string) resetPage {
	f := newForm(passwordField("New password"))
	_, err := v.dashboard.config.Accounts.Resetting(token)
	if err == nil {
		return resetPage{f, token}
	}
	asked := &field{Name: fieldToken, Label: "Token", Kind: "text", Complete: "off", Value: token, Hint: "The token that the operator of this service sent you."}
	f.fields = append([]*field{asked}, f.fields...)
	if token != "" {
		asked.Problem = sentence(err.Error())
	}
	return resetPage{f, ""}
}

// reset shows the form for a new password.
func (v *visit) reset() error {
	p := v.resetForm(v.r.URL.Query().Get(fieldToken))
	return v.show(statusOf(p.Form), "reset", "Set a new password", p)
}

// wasReset handles the form of reset.
func (v *visit) wasReset() error {
	token := v.r.PostForm.Get(fieldToken)
	p := v.resetForm(token)
	p.Form.read(v.r)
	if p.Form.ok() {
		_, session, err := v.dashboard.config.Accounts.SetPassword(v.r.Context(), token, p.Form.value("password"), client(v.r))
		if err == nil {
			if err := v.begin(session); err != nil {
				return err
			}
			v.say("Your password was set.")
			return v.redirect("/")
		}
		if errors.Is(err, account.ErrReset) || errors.Is(err, account.ErrDisabled) {
			p.Form.fail(fieldToken, sentence(err.Error()))
		} else if err := p.Form.refused(err); err != nil {
			return err
		}
	}
	return v.show(statusOf(p.Form), "reset", "Set a new password", p)
}
