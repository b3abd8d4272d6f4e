package dashboard

import (
	"errors"

	"ashlar/account"
)

// resetPage is what the template of the same name is given.
type resetPage struct {
	Form  *form
	Token string
}

func resetForm() *form {
	return newForm(&field{Name: "password", Label: "New password", Kind: kindSecret, Complete: "new-password", Hint: "Ten characters or more."})
}

// reset shows the form for a new password to who comes with the link for it.
func (v *visit) reset() error {
	p := resetPage{resetForm(), v.r.URL.Query().Get("token")}
	if _, err := v.dashboard.config.Accounts.Resetting(p.Token); err != nil {
		p.Form.Problem = sentence(err.Error())
	}
	return v.show(statusOf(p.Form), "reset", "Set a new password", p)
}

// wasReset takes the form of reset.
func (v *visit) wasReset() error {
	p := resetPage{resetForm(), v.r.PostForm.Get("token")}
	p.Form.read(v.r)
	if p.Form.ok() {
		_, session, err := v.dashboard.config.Accounts.SetPassword(v.r.Context(), p.Token, p.Form.value("password"), client(v.r))
		if err == nil {
			if err := v.begin(session); err != nil {
				return err
			}
			v.say("Your password is set.")
			return v.lead("/")
		}
		if errors.Is(err, account.ErrReset) || errors.Is(err, account.ErrDisabled) {
			p.Form.Problem = sentence(err.Error())
		} else if err := p.Form.refused(err); err != nil {
			return err
		}
	}
	return v.show(statusOf(p.Form), "reset", "Set a new password", p)
}
