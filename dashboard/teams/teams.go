// Package teams serves the pages with which users create teams, join them, and manage their
// members.
package teams

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForUsers("GET /teams", list),
		site.ForUsers("POST /teams", create),
		site.ForAll("GET /teams/join", showInvitation),
		site.ForUsers("POST /teams/join", join),
		site.ForManagers("GET /members", account.TeamViewer, showMembers),
		site.ForManagers("POST /members/{member}", account.TeamOwner, changeRole),
		site.ForManagers("GET /members/{member}/remove", account.TeamOwner, askRemoval),
		site.ForManagers("POST /members/{member}/remove", account.TeamOwner, remove),
		site.ForManagers("POST /invitations", account.TeamOwner, invite),
		site.ForManagers("GET /invitations/{invitation}/withdraw", account.TeamOwner, askWithdrawal),
		site.ForManagers("POST /invitations/{invitation}/withdraw", account.TeamOwner, withdraw),
		site.ForManagers("POST /name", account.TeamOwner, rename),
		site.ForTeam("GET /leave", account.TeamViewer, askLeaving),
		site.ForTeam("POST /leave", account.TeamViewer, leave),
		site.ForManagers("GET /delete", account.TeamOwner, showDeletion),
		site.ForManagers("POST /delete", account.TeamOwner, deleteTeam),
	}
}

// teamsPage is the data of the template teams.
type teamsPage struct {
	Teams  []teamLine
	Form   *site.Form
	May    bool // the visitor may create a team
	Owning bool // the visitor owns a team
}

type teamLine struct {
	account.Membership
	Path string
}

func nameForm() *site.Form {
	return site.NewForm(&site.Field{Name: "name", Label: "Name", Kind: "text", Complete: "off"})
}

func list(v *site.Visit) error { return showTeams(v, nameForm()) }

func showTeams(v *site.Visit, f *site.Form) error {
	p := teamsPage{Form: f, May: v.Config.Accounts.MayCreateTeam(v.Who)}
	for _, m := range v.Config.Accounts.Teams(v.Who.ID) {
		of := site.Chosen{Account: &m.Team, Role: m.Role}
		p.Teams = append(p.Teams, teamLine{m, of.Base()})
		p.Owning = p.Owning || m.Role == account.TeamOwner
	}
	return v.Show(site.StatusOf(f), "teams", "Teams", p)
}

// create handles the form of teams.
func create(v *site.Visit) error {
	f := nameForm()
	f.Read(v.R)
	if !f.OK() {
		return showTeams(v, f)
	}
	team, err := v.Config.Accounts.CreateTeam(v.R.Context(), f.Value("name"), v.Who.ID)
	if err != nil {
		if err := refused(f, err); err != nil {
			return err
		}
		return showTeams(v, f)
	}
	v.Say("The team is ready. Invite its members here.")
	return v.Redirect(pathOf(&team) + "/members")
}

// pathOf returns the path of a team's first page.
func pathOf(team *account.Account) string { return site.Chosen{Account: team}.Base() }

// refused records an error as a problem of a form, and returns any other error.
func refused(f *site.Form, err error) error {
	if errors.Is(err, account.ErrTooMany) || errors.Is(err, account.ErrLastOwner) {
		f.Problem = site.Sentence(err.Error())
		return nil
	}
	return f.Refused(err)
}
