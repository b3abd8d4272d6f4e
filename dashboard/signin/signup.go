package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// signUpPage is the data of the template signup.
type signUpPage struct {
	Form       *site.Form // nil if registration is closed
	Invited    bool
	Invitation string // its token from the link, or empty
	Closed     string // why registration is closed
}

const FieldInvitation = "invitation"

// signUpForm asks for an address and a password; where addresses are verified, for the
// address only.
func signUpForm(v *site.Visit) *site.Form {
	f := site.NewForm(&site.Field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"})
	if v.Config.Accounts.Mails() {
		f.Field("email").Hint = "You will receive an e-mail with a link to continue."
	} else {
		f.Fields = append(f.Fields, site.PasswordField("Password"))
	}
	return f
}

// signUp shows the form for a new account if registration is open or the visitor has an
// invitation.
func signUp(v *site.Visit) error {
	if v.Who != nil {
		return v.Redirect("/")
	}
	p := signUpPage{Invitation: v.R.URL.Query().Get(FieldInvitation)}
	accounts := v.Config.Accounts
	switch registration := accounts.Registration(); {
	case registration == account.RegistrationClosed:
		p.Closed = "Registration is closed. The operator of this service creates accounts."
	case p.Invitation != "":
		invitation, err := accounts.Invitation(p.Invitation)
		if err != nil {
			p.Closed = site.Advised(err)
			break
		}
		p.Invited, p.Form = true, signUpForm(v)
		p.Form.Fill("email", invitation.Email)
	case registration == account.RegistrationInvited:
		p.Form = askInvitation(signUpForm(v))
	default:
		p.Form = signUpForm(v)
	}
	return v.Show(200, "signup", "Create an account", p)
}

// askInvitation adds a field for an invitation's token.
func askInvitation(f *site.Form) *site.Form {
	asked := &site.Field{
		Name: FieldInvitation, Label: "Invitation", Kind: "text", Complete: "off",
		Hint: "You need an invitation from the operator of this service.",
	}
	f.Fields = append([]*site.Field{asked}, f.Fields...)
	return f
}

// signedUp handles the form of signUp.
func signedUp(v *site.Visit) error {
	accounts, invitation := v.Config.Accounts, v.R.PostForm.Get(FieldInvitation)
	p := signUpPage{Form: signUpForm(v)}
	if _, err := accounts.Invitation(invitation); err == nil {
		p.Invited, p.Invitation = true, invitation
	} else if accounts.Registration() == account.RegistrationInvited {
		askInvitation(p.Form)
	}
	f := p.Form
	f.Read(v.R)
	if f.OK() {
		who := account.Registrant{Email: f.Value("email"), Password: f.Value("password"), Invitation: invitation, Address: site.Client(v.R)}
		var err error
		if accounts.Mails() {
			if err = accounts.RequestRegistration(v.R.Context(), who); err == nil {
				return v.ShowMailed(site.MailedPage{Email: who.Email, To: "create your account"})
			}
		} else if err = register(v, who); err == nil {
			return v.Redirect("/")
		}
		if errors.Is(err, account.ErrClosed) || errors.Is(err, account.ErrNoInvitation) {
			f.Fail(FieldInvitation, site.Advised(err))
		} else if err := f.Refused(err); err != nil {
			return err
		}
	}
	return v.Show(site.StatusOf(f), "signup", "Create an account", p)
}

// register creates an account and signs its user in.
func register(v *site.Visit, who account.Registrant) error {
	_, session, err := v.Config.Accounts.Register(v.R.Context(), who)
	if err != nil {
		return err
	}
	if err := v.Begin(session); err != nil {
		return err
	}
	v.Say("Welcome. Your account is ready.")
	return nil
}
