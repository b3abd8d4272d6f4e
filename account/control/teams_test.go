package control

import (
	"errors"
	"testing"

	"ashlar/account"
)

// Teams can be managed while a server is running, and errors keep their kinds.
func TestTeamsThroughTheSocket(t *testing.T) {
	service, keys := openService(t)
	dir := t.TempDir()
	defer serve(t, dir, service)()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, remote := t.Context(), c.Service()
	var people [2]account.Account
	for i, email := range []string{"owner@example.org", "other@example.org"} {
		if _, people[i], err = remote.Accounts.Create(ctx, account.NewAccount{Email: email}); err != nil {
			t.Fatal(err)
		}
	}
	owner, other := people[0].ID, people[1].ID
	team, err := remote.Accounts.CreateTeam(ctx, "stone", owner)
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() (account.Account, error){
		"rename": func() (account.Account, error) { return remote.Accounts.RenameTeam(ctx, team.ID, "granite") },
		"add": func() (account.Account, error) {
			return remote.Accounts.AddMember(ctx, team.ID, "other@example.org", account.TeamViewer)
		},
	} {
		if changed, err := do(); err != nil || changed.ID != team.ID {
			t.Errorf("%s: %+v, %v", what, changed, err)
		}
	}
	if _, err := remote.Accounts.RemoveMember(ctx, team.ID, owner); !errors.Is(err, account.ErrLastOwner) {
		t.Errorf("remove the last owner: %v", err)
	}
	if _, err := remote.Accounts.SetMemberRole(ctx, team.ID, other, account.TeamOwner); err != nil {
		t.Error(err)
	}
	if _, err := remote.Accounts.RemoveMember(ctx, team.ID, owner); err != nil {
		t.Error(err)
	}
	members, err := remote.Accounts.Members(ctx, team.ID)
	if err != nil || len(members) != 1 || members[0].Account != other || members[0].Role != account.TeamOwner {
		t.Errorf("members %+v, %v", members, err)
	}
	issued, err := remote.Keys.Create(ctx, account.NewKey{Owner: team.ID})
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := keys.Check(issued.APIKey); !ok || k.Account().Team != "granite" {
		t.Errorf("the team's key: %+v, %t", k, ok)
	}
	if _, err := remote.Accounts.Members(ctx, owner); !errors.Is(err, account.ErrNoTeam) {
		t.Errorf("members of a user's account: %v", err)
	}
	if _, _, err := remote.Accounts.Reset(ctx, team.ID.String()); !errors.Is(err, account.ErrTeam) {
		t.Errorf("a password of a team: %v", err)
	}
}
