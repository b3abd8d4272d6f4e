package people

import (
	"cmp"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
)

// invitationsPage is the data of the template invitations.
type invitationsPage struct {
	Form        *site.Form
	Link        string // of the invitation just created; else empty
	Invitations []invitationLine
}

type invitationLine struct {
	account.Invitation
	For   string
	As    string // the role, for one to a team with its name
	State string
	Mood  string // CSS class of the badge
	Open  bool
}

func invitationForm() *site.Form {
	f := site.NewForm(
		&site.Field{Name: "email", Label: "For", Kind: "email", Optional: true, Complete: "off", Hint: "Only this e-mail address can use the invitation."},
		&site.Field{Name: "role", Label: "Role", Kind: site.KindSelect, Choices: roleChoices(), Hint: rolesHint},
		&site.Field{Name: "expires", Label: "Valid for", Kind: site.KindSelect, Choices: []site.Choice{{Value: "1", Label: "a day"}, {Value: "7", Label: "a week"}, {Value: "30", Label: "30 days"}, {Value: "90", Label: "90 days"}}},
	)
	f.Fill("role", string(account.RoleUser))
	f.Fill("expires", "7")
	return f
}

func listInvitations(v *site.Visit) error {
	return showInvitations(v, invitationsPage{Form: invitationForm()})
}

func showInvitations(v *site.Visit, p invitationsPage) error {
	all, err := v.Config.Accounts.Invitations(v.R.Context())
	if err != nil {
		return err
	}
	for _, i := range all {
		line := invitationLine{Invitation: i, For: cmp.Or(i.Email, "anybody"), As: roleIn(v, &i), Open: i.Open(time.Now())}
		line.State, line.Mood = invitationState(v, &i)
		p.Invitations = append(p.Invitations, line)
	}
	return v.Show(site.StatusOf(p.Form), "invitations", "Invitations", p)
}

// roleIn returns the role that an invitation gives, for one to a team with its name.
func roleIn(v *site.Visit, i *account.Invitation) string {
	if i.Team.IsZero() {
		return string(i.Role)
	}
	return string(i.TeamRole) + " of " + labelOf(v, i.Team)
}

func invitationState(v *site.Visit, i *account.Invitation) (text, mood string) {
	switch {
	case !i.UsedBy.IsZero():
		if a, err := v.Config.Accounts.Find(i.UsedBy.String()); err == nil {
			return "used by " + a.Email, ""
		}
		return "used", ""
	case !i.Withdrawn.IsZero():
		return "withdrawn", ""
	case !i.Open(time.Now()):
		return "expired", ""
	case !v.Config.Accounts.Valid(*i):
		return "ended: its maker may not invite any more", ""
	}
	return "open", "good"
}

// invite handles the form of invitations. The link contains a token, so only this answer
// shows it. An invitation of an operator needs a proof of who its maker is.
func invite(v *site.Visit) error {
	p := invitationsPage{Form: invitationForm()}
	p.Form.Read(v.R)
	days, err := strconv.Atoi(p.Form.Value("expires"))
	if err != nil || !p.Form.OK() {
		return showInvitations(v, p)
	}
	n, err := v.Config.Accounts.CheckInvitation(account.NewInvitation{
		Email: p.Form.Value("email"), Role: account.Role(p.Form.Value("role")), By: v.Who.ID, Valid: time.Duration(days) * 24 * time.Hour,
	})
	if err != nil {
		return inviteRefused(v, p, err)
	}
	if n.Role == account.RoleOperator {
		if proved, err := v.Reproved(operatorInvitation(n)); err != nil || !proved {
			return err
		}
	}
	token, _, err := v.Config.Accounts.Invite(v.R.Context(), n)
	if err != nil {
		return inviteRefused(v, p, err)
	}
	p.Form, p.Link = invitationForm(), v.LinkTo("/signup", signin.FieldInvitation, token)
	return showInvitations(v, p)
}

// inviteRefused shows why an invitation is refused, and returns any other error.
func inviteRefused(v *site.Visit, p invitationsPage, err error) error {
	if err := p.Form.Refused(err); err != nil {
		return err
	}
	return showInvitations(v, p)
}

// operatorInvitation describes an invitation of an operator.
func operatorInvitation(n account.NewInvitation) site.SensitiveAction {
	return site.SensitiveAction{
		Question: "Invite an operator?", Effect: "An operator manages all accounts. The invitation is for " + cmp.Or(n.Email, "anybody who has its link") + ".",
		Button: "Create the invitation", Back: "/invitations", BackTo: "Invitations",
	}
}

// askWithdrawal asks for confirmation before an invitation is withdrawn. One that is not open leads back to the list.
func askWithdrawal(v *site.Visit) error {
	all, err := v.Config.Accounts.Invitations(v.R.Context())
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID == v.R.PathValue("invitation") && i.Open(time.Now()) {
			return v.ShowWithdrawal(i, roleIn(v, &i), "/invitations")
		}
	}
	return v.Redirect("/invitations")
}

// withdraw revokes an invitation.
func withdraw(v *site.Visit) error {
	withdrawn, err := v.Config.Accounts.Withdraw(v.R.Context(), v.R.PathValue("invitation"))
	if err != nil {
		return err
	}
	v.SayDone("The invitation was withdrawn.", withdrawn.Unsaved)
	return v.Redirect("/invitations")
}
