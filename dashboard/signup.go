package dashboard

import (
	"errors"

	"ashlar/account"
)

// signUpPage is the data of the template signup.
type signUpPage struct {
	Form       *form // nil if registration is closed
	Invited    bool
	Invitation string // its token from the link, or empty
	Closed     string // why registration is closed
}

const fieldInvitation = "invitation"

// signUpForm asks for an address and a password; where addresses are verified, for the
// address only.
func (v *visit) signUpForm() *form {
	f := newForm(&field{Name: "email", Label: "E-mail address", Kind: "email", Complete: "username"})
	if v.dashboard.config.Accounts.Mails() {
		f.Field("email").Hint = "You will receive an e-mail with a link to continue."
	} else {
		f.fields = append(f.fields, passwordField("Password"))
	}
	return f
}

// signUp shows the form for a new account if registration is open or the visitor has an
// invitation.
func (v *visit) signUp() error {
	if v.who != nil {
		return v.redirect("/")
	}
	p := signUpPage{Invitation: v.r.URL.Query().Get(fieldInvitation)}
	accounts := v.dashboard.config.Accounts
	switch registration := accounts.Registration(); {
	case registration == account.RegistrationClosed:
		p.Closed = "Registration is closed. The operator of this service creates accounts."
	case p.Invitation != "":
		invitation, err := accounts.Invitation(p.Invitation)
		if err != nil {
			p.Closed = sentence(err.Error())
			break
		}
		p.Invited, p.Form = true, v.signUpForm()
		p.Form.fill("email", invitation.Email)
	case registration == account.RegistrationInvited:
		p.Form = askInvitation(v.signUpForm())
	default:
		p.Form = v.signUpForm()
	}
	return v.show(200, "signup", "Create an account", p)
}

// askInvitation adds a field for an invitation's token.
func askInvitation(f *form) *form {
	asked := &field{
		Name: fieldInvitation, Label: "Invitation", Kind: "text", Complete: "off",
		Hint: "You need an invitation from the operator of this service.",
	}
	f.fields = append([]*field{asked}, f.fields...)
	return f
}

// signedUp handles the form of signUp.
func (v *visit) signedUp() error {
	accounts, invitation := v.dashboard.config.Accounts, v.r.PostForm.Get(fieldInvitation)
	p := signUpPage{Form: v.signUpForm()}
	if _, err := accounts.Invitation(invitation); err == nil {
		p.Invited, p.Invitation = true, invitation
	} else if accounts.Registration() == account.RegistrationInvited {
		askInvitation(p.Form)
	}
	f := p.Form
	f.read(v.r)
	if f.ok() {
		who := account.Registrant{Email: f.value("email"), Password: f.value("password"), Invitation: invitation, Address: client(v.r)}
		var err error
		if accounts.Mails() {
			if err = accounts.RequestRegistration(v.r.Context(), who); err == nil {
				return v.mailed(mailedPage{Email: who.Email, To: "create your account"})
			}
		} else if err = v.register(who); err == nil {
			return v.redirect("/")
		}
		if errors.Is(err, account.ErrClosed) || errors.Is(err, account.ErrNoInvitation) {
			f.fail(fieldInvitation, sentence(err.Error()))
		} else if err := f.refused(err); err != nil {
			return err
		}
	}
	return v.show(statusOf(f), "signup", "Create an account", p)
}

// register creates an account and signs its user in.
func (v *visit) register(who account.Registrant) error {
	_, session, err := v.dashboard.config.Accounts.Register(v.r.Context(), who)
	if err != nil {
		return err
	}
	if err := v.begin(session); err != nil {
		return err
	}
	v.say("Welcome. Your account is ready.")
	return nil
}
