package dashboard

import (
	"cmp"
	"strconv"
	"time"

	"ashlar/account"
)

// invitationsPage is the data of the template invitations.
type invitationsPage struct {
	Form        *form
	Link        string // of the invitation just created; else empty
	Invitations []invitationLine
}

type invitationLine struct {
	account.Invitation
	For   string
	State string
	Mood  string // CSS class of the badge
	Open  bool
}

func invitationForm() *form {
	f := newForm(
		&field{Name: "email", Label: "For", Kind: "email", Optional: true, Complete: "off", Hint: "Only this e-mail address can use the invitation."},
		&field{Name: "role", Label: "Role", Kind: kindSelect, Choices: roleChoices()},
		&field{Name: "expires", Label: "Valid for", Kind: kindSelect, Choices: []choice{{"1", "a day"}, {"7", "a week"}, {"30", "30 days"}, {"90", "90 days"}}},
	)
	f.fill("role", string(account.RoleUser))
	f.fill("expires", "7")
	return f
}

func (v *visit) invitations() error {
	return v.showInvitations(invitationsPage{Form: invitationForm()})
}

func (v *visit) showInvitations(p invitationsPage) error {
	all, err := v.dashboard.config.Accounts.Invitations(v.r.Context())
	if err != nil {
		return err
	}
	for _, i := range all {
		line := invitationLine{Invitation: i, For: cmp.Or(i.Email, "anybody"), Open: i.Open(time.Now())}
		line.State, line.Mood = v.invitationState(&i)
		p.Invitations = append(p.Invitations, line)
	}
	return v.show(statusOf(p.Form), "invitations", "Invitations", p)
}

func (v *visit) invitationState(i *account.Invitation) (text, mood string) {
	switch {
	case !i.UsedBy.IsZero():
		if a, err := v.dashboard.config.Accounts.Find(i.UsedBy.String()); err == nil {
			return "used by " + a.Email, ""
		}
		return "used", ""
	case !i.Withdrawn.IsZero():
		return "withdrawn", ""
	case !i.Open(time.Now()):
		return "expired", ""
	}
	return "open", "good"
}

// invite handles the form of invitations. The link contains a token, so only this answer
// shows it.
func (v *visit) invite() error {
	p := invitationsPage{Form: invitationForm()}
	p.Form.read(v.r)
	days, err := strconv.Atoi(p.Form.value("expires"))
	if err != nil || !p.Form.ok() {
		return v.showInvitations(p)
	}
	token, _, err := v.dashboard.config.Accounts.Invite(v.r.Context(), account.NewInvitation{
		Email: p.Form.value("email"), Role: account.Role(p.Form.value("role")), By: v.who.ID, Valid: time.Duration(days) * 24 * time.Hour,
	})
	if err != nil {
		if err := p.Form.refused(err); err != nil {
			return err
		}
		return v.showInvitations(p)
	}
	p.Form, p.Link = invitationForm(), v.linkTo("/signup", fieldInvitation, token)
	return v.showInvitations(p)
}

// withdraw revokes an invitation.
func (v *visit) withdraw() error {
	withdrawn, err := v.dashboard.config.Accounts.Withdraw(v.r.Context(), v.r.PathValue("invitation"))
	if err != nil {
		return err
	}
	v.sayDone("The invitation was withdrawn.", withdrawn.Unsaved)
	return v.redirect("/invitations")
}
