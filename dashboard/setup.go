package dashboard

import (
	"errors"

	"ashlar/account"
)

// setUpPage is the data of the template setup.
type setUpPage struct {
	Form  *form // nil if the token is not valid
	Token string
	Wrong string // why the token is not valid
}

func setUpForm() *form {
	return newForm(&field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"}, passwordField("Password"))
}

// setUp shows the form for the first operator, to which a link in the server's log leads.
func (v *visit) setUp() error { return v.showSetUp(v.r.URL.Query().Get(fieldToken), setUpForm()) }

func (v *visit) showSetUp(token string, f *form) error {
	p := setUpPage{Form: f, Token: token}
	if err := v.dashboard.config.Accounts.First(token); err != nil {
		p.Form, p.Wrong = nil, sentence(err.Error())
	}
	return v.show(statusOf(f), "setup", "Create the first operator", p)
}

// wasSetUp handles the form of setUp.
func (v *visit) wasSetUp() error {
	token, f := v.r.PostForm.Get(fieldToken), setUpForm()
	f.read(v.r)
	if f.ok() {
		_, session, err := v.dashboard.config.Accounts.CreateFirst(v.r.Context(), token, f.value("email"), f.value("password"), client(v.r))
		if err == nil {
			if err := v.begin(session); err != nil {
				return err
			}
			v.say("Welcome. You are the operator of this server.")
			return v.redirect("/")
		}
		if errors.Is(err, account.ErrReset) {
			f.Problem = sentence(err.Error())
		} else if err := f.refused(err); err != nil {
			return err
		}
	}
	return v.showSetUp(token, f)
}
