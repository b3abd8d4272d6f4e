package control

import (
	"context"
	"net/http"

	"ashlar/account"
)

// Teams are the operations on teams. [account.Accounts] performs them directly. Teams are listed,
// limited, disabled and deleted like other accounts.
type Teams interface {
	CreateTeam(ctx context.Context, name string, owner account.ID) (account.Account, error)
	RenameTeam(ctx context.Context, team account.ID, name string) (account.Account, error)
	Members(ctx context.Context, team account.ID) ([]account.Member, error)
	AddMember(ctx context.Context, team account.ID, idOrEmail string, role account.TeamRole) (account.Account, error)
	SetMemberRole(ctx context.Context, team, member account.ID, role account.TeamRole) (account.Account, error)
	RemoveMember(ctx context.Context, team, member account.ID) (account.Account, error)
}

var (
	_ Teams = (*account.Accounts)(nil)
	_ Teams = accountsClient{}
)

// Operations on teams.
var (
	createTeam   = operation[teamRequest, account.Account]{"/teams/create"}
	renameTeam   = operation[teamRequest, account.Account]{"/teams/rename"}
	listMembers  = operation[account.ID, []account.Member]{"/teams/members/list"}
	addMember    = operation[teamRequest, account.Account]{"/teams/members/add"}
	setMember    = operation[teamRequest, account.Account]{"/teams/members/role"}
	removeMember = operation[teamRequest, account.Account]{"/teams/members/remove"}
)

// teamRequest is a team and the changes to make to it.
type teamRequest struct {
	Team   account.ID       `json:"team,omitzero"`
	Name   string           `json:"name,omitempty"`
	Member account.ID       `json:"member,omitzero"`
	Email  string           `json:"email,omitempty"` // or the ID of the account to add
	Role   account.TeamRole `json:"role,omitempty"`
}

// serveTeams registers the operations on teams.
func serveTeams(mux *http.ServeMux, teams Teams) {
	createTeam.serve(mux, func(ctx context.Context, in teamRequest) (account.Account, error) {
		return teams.CreateTeam(ctx, in.Name, in.Member)
	})
	renameTeam.serve(mux, func(ctx context.Context, in teamRequest) (account.Account, error) {
		return teams.RenameTeam(ctx, in.Team, in.Name)
	})
	listMembers.serve(mux, teams.Members)
	addMember.serve(mux, func(ctx context.Context, in teamRequest) (account.Account, error) {
		return teams.AddMember(ctx, in.Team, in.Email, in.Role)
	})
	setMember.serve(mux, func(ctx context.Context, in teamRequest) (account.Account, error) {
		return teams.SetMemberRole(ctx, in.Team, in.Member, in.Role)
	})
	removeMember.serve(mux, func(ctx context.Context, in teamRequest) (account.Account, error) {
		return teams.RemoveMember(ctx, in.Team, in.Member)
	})
}

func (a accountsClient) CreateTeam(ctx context.Context, name string, owner account.ID) (account.Account, error) {
	return createTeam.ask(ctx, a.Client, teamRequest{Name: name, Member: owner})
}

func (a accountsClient) RenameTeam(ctx context.Context, team account.ID, name string) (account.Account, error) {
	return renameTeam.ask(ctx, a.Client, teamRequest{Team: team, Name: name})
}

func (a accountsClient) Members(ctx context.Context, team account.ID) ([]account.Member, error) {
	return listMembers.ask(ctx, a.Client, team)
}

func (a accountsClient) AddMember(ctx context.Context, team account.ID, idOrEmail string, role account.TeamRole) (account.Account, error) {
	return addMember.ask(ctx, a.Client, teamRequest{Team: team, Email: idOrEmail, Role: role})
}

func (a accountsClient) SetMemberRole(ctx context.Context, team, member account.ID, role account.TeamRole) (account.Account, error) {
	return setMember.ask(ctx, a.Client, teamRequest{Team: team, Member: member, Role: role})
}

func (a accountsClient) RemoveMember(ctx context.Context, team, member account.ID) (account.Account, error) {
	return removeMember.ask(ctx, a.Client, teamRequest{Team: team, Member: member})
}
