package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// setUpPage is the data of the template setup.
type setUpPage struct {
	Form  *site.Form // nil if the token is not valid
	Token string
	Wrong string // why the token is not valid
}

func setUpForm() *site.Form {
	return site.NewForm(&site.Field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"}, site.PasswordField("Password"))
}

// showSetUpOf shows the form for the first operator, to which a link in the server's log leads.
func showSetUpOf(v *site.Visit) error {
	return showSetUp(v, v.R.URL.Query().Get(FieldToken), setUpForm())
}

func showSetUp(v *site.Visit, token string, f *site.Form) error {
	p := setUpPage{Form: f, Token: token}
	if err := v.Config.Accounts.First(token); err != nil {
		p.Form, p.Wrong = nil, site.Sentence(err.Error())
	}
	return v.Show(site.StatusOf(f), "setup", "Create the first operator", p)
}

// wasSetUp handles the form of setUp.
func wasSetUp(v *site.Visit) error {
	token, f := v.R.PostForm.Get(FieldToken), setUpForm()
	f.Read(v.R)
	if f.OK() {
		_, session, err := v.Config.Accounts.CreateFirst(v.R.Context(), token, f.Value("email"), f.Value("password"), site.Client(v.R))
		if err == nil {
			if err := v.Begin(session); err != nil {
				return err
			}
			v.Say("Welcome. You are the operator of this server.")
			return v.Redirect("/")
		}
		if errors.Is(err, account.ErrReset) {
			f.Problem = site.Sentence(err.Error())
		} else if err := f.Refused(err); err != nil {
			return err
		}
	}
	return showSetUp(v, token, f)
}
