package teams

import (
	"errors"
	"net/url"

	"ashlar/account"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
)

// JoinPath is the path of an invitation's link.
const JoinPath = "/teams/join"

// joinPage is the data of the template join.
type joinPage struct {
	Team   string
	Role   string // with an article
	Token  string
	Closed string // why the invitation cannot be used; may be empty
	// SignIn and SignUp are the links for a visitor who is not signed in; the second is empty if
	// no account can be created.
	SignIn, SignUp string
}

// showInvitation shows what an invitation to a team is for.
func showInvitation(v *site.Visit) error {
	p := joinPage{Token: v.R.URL.Query().Get(signin.FieldInvitation)}
	accounts := v.Config.Accounts
	var i account.Invitation
	var err error
	if v.Who != nil {
		i, err = accounts.Joinable(p.Token, v.Who.ID)
	} else {
		i, err = accounts.Invitation(p.Token)
		token := url.Values{signin.FieldInvitation: {p.Token}}.Encode()
		p.SignIn = "/signin?" + url.Values{"next": {JoinPath + "?" + token}}.Encode()
		if accounts.Registration() != account.RegistrationClosed {
			p.SignUp = "/signup?" + token
		}
	}
	if err == nil && i.Team.IsZero() {
		err = account.ErrNoInvitation
	}
	if err != nil {
		return showClosed(v, p, err)
	}
	team, err := accounts.FindTeam(i.Team.String())
	if err != nil {
		return err
	}
	p.Team, p.Role = team.Team, site.WithArticle(i.TeamRole)
	return v.Show(200, "join", "Join a team", p)
}

// showClosed says why an invitation cannot be used.
func showClosed(v *site.Visit, p joinPage, err error) error {
	var wrong *account.Invalid
	if !errors.Is(err, account.ErrNoInvitation) && !errors.Is(err, account.ErrTooMany) && !errors.As(err, &wrong) {
		return err
	}
	p.Closed = site.Advised(err)
	return v.Show(422, "join", "Join a team", p)
}

// join makes the visitor a member.
func join(v *site.Visit) error {
	token := v.R.PostForm.Get(signin.FieldInvitation)
	team, err := v.Config.Accounts.Join(v.R.Context(), token, v.Who.ID)
	if err != nil {
		return showClosed(v, joinPage{}, err)
	}
	v.Say("You are a member of the team " + team.Team + ".")
	return v.Redirect(pathOf(&team))
}
