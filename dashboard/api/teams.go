package api

import (
	"errors"
	"net/http"
	"time"

	"ashlar/account"
	"ashlar/dashboard/signin"
	"ashlar/dashboard/teams"
)

// errNoMember means that an account is not a member of the team.
var errNoMember = errors.New("no such member")

// teamAnswer is a team of the token's owner.
type teamAnswer struct {
	ID   account.ID       `json:"id"`
	Name string           `json:"name"`
	Role account.TeamRole `json:"role"`
}

func (c *call) teams() (int, any, error) {
	all := []teamAnswer{}
	for _, m := range c.config.Accounts.Teams(c.who.ID) {
		all = append(all, teamAnswer{m.Team.ID, m.Team.Team, m.Role})
	}
	return http.StatusOK, all, nil
}

func (c *call) members() (int, any, error) {
	all, err := c.config.Accounts.Members(c.r.Context(), c.Account.ID)
	if all == nil {
		all = []account.Member{}
	}
	return http.StatusOK, all, err
}

// member returns the member whose account the path names.
func (c *call) member() (m account.Member, err error) {
	var id account.ID
	if id.UnmarshalText([]byte(c.r.PathValue("member"))) != nil {
		return m, errNoMember
	}
	all, err := c.config.Accounts.Members(c.r.Context(), c.Account.ID)
	for _, m := range all {
		if m.Account == id {
			return m, nil
		}
	}
	if err == nil {
		err = errNoMember
	}
	return m, err
}

func (c *call) setRole() (int, any, error) {
	var asked struct {
		Role account.TeamRole `json:"role"`
	}
	if err := c.read(&asked); err != nil {
		return 0, nil, err
	}
	m, err := c.member()
	if err == nil {
		_, err = c.config.Accounts.SetMemberRole(c.r.Context(), c.Account.ID, m.Account, asked.Role)
	}
	m.Role = asked.Role
	return http.StatusOK, m, err
}

func (c *call) removeMember() (int, any, error) {
	m, err := c.member()
	if err == nil {
		_, err = c.config.Accounts.RemoveMember(c.r.Context(), c.Account.ID, m.Account)
	}
	return http.StatusOK, m, err
}

// invitationAnswer is an invitation to a team.
type invitationAnswer struct {
	ID      string           `json:"id"`
	Email   string           `json:"email,omitempty"`
	Role    account.TeamRole `json:"role"`
	Expires time.Time        `json:"expires"`
	Link    string           `json:"link,omitempty"` // only when it is created
}

func (c *call) invitations() (int, any, error) {
	open, err := c.config.Accounts.TeamInvitations(c.r.Context(), c.Account.ID)
	all := []invitationAnswer{}
	for _, i := range open {
		all = append(all, invitationAnswer{ID: i.ID, Email: i.Email, Role: i.TeamRole, Expires: i.Expires})
	}
	return http.StatusOK, all, err
}

func (c *call) invite() (int, any, error) {
	var asked struct {
		Email        string           `json:"email"`
		Role         account.TeamRole `json:"role"`
		ValidSeconds int64            `json:"validSeconds"`
	}
	if err := c.read(&asked); err != nil {
		return 0, nil, err
	}
	const most = int64(account.MaxInvitationTime / time.Second)
	if asked.ValidSeconds < 0 || asked.ValidSeconds > most {
		asked.ValidSeconds = most + 1 // which is refused, also where it would overflow
	}
	token, i, err := c.config.Accounts.Invite(c.r.Context(), account.NewInvitation{
		Email: asked.Email, Team: c.Account.ID, TeamRole: asked.Role, By: c.who.ID, Valid: time.Duration(asked.ValidSeconds) * time.Second,
	})
	link := c.config.LinkTo(c.r, teams.JoinPath, signin.FieldInvitation, token)
	return http.StatusCreated, invitationAnswer{i.ID, i.Email, i.TeamRole, i.Expires, link}, err
}

func (c *call) withdraw() (int, any, error) {
	i, err := c.config.Accounts.WithdrawFrom(c.r.Context(), c.Account.ID, c.r.PathValue("invitation"))
	return http.StatusOK, invitationAnswer{ID: i.ID, Email: i.Email, Role: i.TeamRole, Expires: i.Expires}, err
}
