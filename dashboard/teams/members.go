package teams

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/site"
)

// membersPage is the data of the template members.
type membersPage struct {
	Members     []memberLine
	Owner       bool       // the visitor may change members
	Member      bool       // the visitor is one; an operator may not be
	Form        *site.Form // to invite
	Name        *site.Form
	Problem     string // of a change of a member; may be empty
	Link        string // of the invitation just created; else empty
	Invitations []invitationLine
}

type memberLine struct {
	account.Member
	Own   bool
	Roles []site.Choice
}

type invitationLine struct {
	account.Invitation
	For string
}

func roleChoices() []site.Choice {
	return []site.Choice{
		{Value: string(account.TeamViewer), Label: "Viewer"},
		{Value: string(account.TeamMember), Label: "Member"},
		{Value: string(account.TeamOwner), Label: "Owner"},
	}
}

func inviteForm() *site.Form {
	f := site.NewForm(
		&site.Field{Name: "email", Label: "For", Kind: "email", Optional: true, Complete: "off", Hint: "Only this e-mail address can use the invitation."},
		&site.Field{Name: "role", Label: "Role", Kind: site.KindSelect, Choices: roleChoices(),
			Hint: "A viewer sees keys, usage and failed requests. A member also creates, changes and revokes keys. An owner also manages members, and may delete the team."},
		&site.Field{Name: "expires", Label: "Valid for", Kind: site.KindSelect, Choices: []site.Choice{{Value: "1", Label: "a day"}, {Value: "7", Label: "a week"}, {Value: "30", Label: "30 days"}}},
	)
	f.Fill("role", string(account.TeamMember))
	f.Fill("expires", "7")
	return f
}

func showMembers(v *site.Visit) error { return showPage(v, membersPage{}) }

// showPage shows the members of a team. Forms that are nil are as they are at first.
func showPage(v *site.Visit, p membersPage) error {
	accounts, team := v.Config.Accounts, v.Account
	p.Form = cmp.Or(p.Form, inviteForm())
	if p.Name == nil {
		p.Name = renameForm()
		p.Name.Fill("team-name", team.Team)
	}
	p.Owner = v.Role == account.TeamOwner || v.Who.Role == account.RoleOperator
	members, err := accounts.Members(v.R.Context(), team.ID)
	if err != nil {
		return err
	}
	for _, m := range members {
		line := memberLine{Member: m, Own: m.Account == v.Who.ID}
		for _, role := range account.TeamRoles() {
			line.Roles = append(line.Roles, site.Choice{Value: string(role), Label: site.Capital(string(role))})
		}
		p.Member = p.Member || line.Own
		p.Members = append(p.Members, line)
	}
	if p.Owner {
		open, err := accounts.TeamInvitations(v.R.Context(), team.ID)
		if err != nil {
			return err
		}
		for _, i := range open {
			p.Invitations = append(p.Invitations, invitationLine{i, cmp.Or(i.Email, "anybody")})
		}
	}
	status := max(site.StatusOf(p.Form), site.StatusOf(p.Name))
	if p.Problem != "" {
		status = 422
	}
	return v.Show(status, "members", "Members of "+team.Team, p)
}

// member returns the ID in the path.
func member(v *site.Visit) (id account.ID, err error) {
	if id.UnmarshalText([]byte(v.R.PathValue("member"))) != nil {
		err = account.ErrNoTeam
	}
	return id, err
}

// proved reports whether a visitor who gives access to the team owns it, or is an operator who proves who they are: a
// session of an operator that leaked must not give lasting access to all teams. If not, it has answered.
func proved(v *site.Visit, question, effect, button string) (bool, error) {
	if v.Role == account.TeamOwner {
		return true, nil
	}
	return v.Reproved(site.SensitiveAction{
		Question: question, Effect: effect + " You do not own this team, but operators may do this.", Button: button,
		Back: v.Path("/members"), BackTo: "Members of " + v.Account.Team,
	})
}

// changeRole changes the role of a member. A higher role gives access.
func changeRole(v *site.Visit) error {
	id, err := member(v)
	if err != nil {
		return err
	}
	accounts, role := v.Config.Accounts, account.TeamRole(v.R.PostForm.Get("role"))
	if _, before, err := accounts.InTeam(v.Account.ID, id); err == nil && !before.Includes(role) {
		of, err := accounts.Find(id.String())
		if err != nil {
			return err
		}
		if ok, err := proved(v, "Give a member a higher role?", of.Label()+" becomes "+site.WithArticle(role)+" of the team.", "Change the role"); err != nil || !ok {
			return err
		}
	}
	team, err := accounts.SetMemberRole(v.R.Context(), v.Account.ID, id, role)
	return changed(v, team, err, "The role was changed.", v.Path("/members"))
}

// askRemoval asks for confirmation before a member is removed. If they have left already, it
// redirects to the list.
func askRemoval(v *site.Visit) error {
	id, err := member(v)
	if err != nil {
		return err
	}
	members, err := v.Config.Accounts.Members(v.R.Context(), v.Account.ID)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Account == id {
			return v.Show(200, "member-remove", "Remove a member", m)
		}
	}
	return v.Redirect(v.Path("/members"))
}

// remove removes a member.
func remove(v *site.Visit) error {
	id, err := member(v)
	if err != nil {
		return err
	}
	team, err := v.Config.Accounts.RemoveMember(v.R.Context(), v.Account.ID, id)
	return changed(v, team, err, "The member was removed.", v.Path("/members"))
}

// changed answers a change of a member: with another page, or with the problem.
func changed(v *site.Visit, team account.Account, err error, done, to string) error {
	var wrong *account.Invalid
	switch {
	case errors.Is(err, account.ErrLastOwner), errors.Is(err, account.ErrTooMany), errors.As(err, &wrong):
		return showPage(v, membersPage{Problem: site.Sentence(err.Error())})
	case err != nil:
		return err
	}
	v.SayDone(done, team.Unsaved)
	if role, ok := roleOf(v); !ok || !role.Includes(account.TeamViewer) {
		to = "/teams" // the visitor has left
	}
	return v.Redirect(to)
}

// roleOf returns the role of the visitor in the team as it is now. Operators keep theirs.
func roleOf(v *site.Visit) (account.TeamRole, bool) {
	if v.Who.Role == account.RoleOperator {
		return account.TeamOwner, true
	}
	_, role, err := v.Config.Accounts.InTeam(v.Account.ID, v.Who.ID)
	return role, err == nil
}

// askLeaving asks for confirmation before the visitor leaves a team.
func askLeaving(v *site.Visit) error {
	return v.Show(200, "team-leave", "Leave a team", v.Role)
}

// leave removes the visitor from a team.
func leave(v *site.Visit) error {
	team, err := v.Config.Accounts.RemoveMember(v.R.Context(), v.Account.ID, v.Who.ID)
	return changed(v, team, err, "You have left the team "+v.Account.Team+".", "/teams")
}

// invite handles the form of members. The link contains a token, so only this answer shows it. It
// does not reveal whether an account has the e-mail address.
func invite(v *site.Visit) error {
	f := inviteForm()
	f.Read(v.R)
	days, err := strconv.Atoi(f.Value("expires"))
	if err != nil || !f.OK() {
		return showPage(v, membersPage{Form: f})
	}
	n, err := v.Config.Accounts.CheckInvitation(account.NewInvitation{
		Email: f.Value("email"), Team: v.Account.ID, TeamRole: account.TeamRole(f.Value("role")), By: v.Who.ID, Valid: time.Duration(days) * 24 * time.Hour,
	})
	token := ""
	if err == nil {
		effect := "The invitation is for " + cmp.Or(n.Email, "anybody who has its link") + ", who becomes " + site.WithArticle(n.TeamRole) + " of the team."
		if ok, err := proved(v, "Invite a member?", effect, "Create the invitation"); err != nil || !ok {
			return err
		}
		token, _, err = v.Config.Accounts.Invite(v.R.Context(), n)
	}
	if err != nil {
		if err := refused(f, err); err != nil {
			return err
		}
		return showPage(v, membersPage{Form: f})
	}
	return showPage(v, membersPage{Link: v.LinkTo(JoinPath, signin.FieldInvitation, token)})
}

// askWithdrawal asks for confirmation before an invitation is withdrawn. One that is not open leads back to the list.
func askWithdrawal(v *site.Visit) error {
	open, err := v.Config.Accounts.TeamInvitations(v.R.Context(), v.Account.ID)
	if err != nil {
		return err
	}
	for _, i := range open {
		if i.ID == v.R.PathValue("invitation") {
			return v.ShowWithdrawal(i, string(i.TeamRole)+" of "+v.Account.Team, v.Path("/members"))
		}
	}
	return v.Redirect(v.Path("/members"))
}

// withdraw ends an invitation to the team.
func withdraw(v *site.Visit) error {
	withdrawn, err := v.Config.Accounts.WithdrawFrom(v.R.Context(), v.Account.ID, v.R.PathValue("invitation"))
	if err != nil {
		return err
	}
	v.SayDone("The invitation was withdrawn.", withdrawn.Unsaved)
	return v.Redirect(v.Path("/members"))
}

// renameForm asks for the team's name. Its field has a name of its own, because another form is on
// the same page.
func renameForm() *site.Form {
	return site.NewForm(&site.Field{Name: "team-name", Label: "Name", Kind: "text", Complete: "off"})
}

// rename changes the name of a team.
func rename(v *site.Visit) error {
	f := renameForm()
	f.Read(v.R)
	if f.OK() {
		_, err := v.Config.Accounts.RenameTeam(v.R.Context(), v.Account.ID, f.Value("team-name"))
		var wrong *account.Invalid
		switch {
		case errors.As(err, &wrong):
			f.Fail("team-name", site.Sentence(wrong.Problem))
		case err != nil:
			return err
		default:
			v.Say("The team was renamed.")
			return v.Redirect(v.Path("/members"))
		}
	}
	return showPage(v, membersPage{Name: f})
}
