package account

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// operator creates an operator's account.
func (f *fixture) operator(email string) Account {
	f.Helper()
	_, a, err := f.accounts.Create(f.Context(), NewAccount{Email: email, Role: RoleOperator})
	if err != nil {
		f.Fatal(err)
	}
	return a
}

// A user cannot get more teams by making other users owners: each owner is one of as many teams
// as the configuration says, unless operators or commands of the shell say otherwise.
func TestOwnersOfOtherTeams(t *testing.T) {
	f := newFixture(t, Config{Teams: 1})
	ctx := t.Context()
	team, owner, _, member, _ := f.team("stone")
	full, boss := f.user("full@example.org"), f.operator("boss@example.org")
	if _, err := f.accounts.CreateTeam(as(ctx, full), "granite", full.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.AddMember(ctx, team.ID, full.Email, TeamViewer); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.SetMemberRole(as(ctx, owner), team.ID, full.ID, TeamOwner); !errors.Is(err, ErrTooMany) {
		t.Errorf("a user makes the owner of another team an owner: %v", err)
	}
	if _, role, err := f.accounts.InTeam(team.ID, full.ID); err != nil || role != TeamViewer {
		t.Errorf("afterwards the role is %q, %v", role, err)
	}
	if _, err := f.accounts.SetMemberRole(as(ctx, owner), team.ID, full.ID, TeamMember); err != nil {
		t.Errorf("another role: %v", err)
	}
	if _, err := f.accounts.SetMemberRole(as(ctx, owner), team.ID, member.ID, TeamOwner); err != nil {
		t.Errorf("a user who owns no team: %v", err)
	}
	if _, err := f.accounts.SetMemberRole(as(ctx, boss), team.ID, full.ID, TeamOwner); err != nil {
		t.Errorf("an operator makes the owner of another team an owner: %v", err)
	}

	second, err := f.accounts.CreateTeam(as(ctx, boss), "marble", boss.ID)
	if err != nil {
		t.Fatal(err)
	}
	guest := f.user("guest@example.org")
	if _, err := f.accounts.CreateTeam(as(ctx, guest), "slate", guest.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by   Account
		team ID
		want error
	}{
		{owner, team.ID, ErrTooMany},
		{boss, second.ID, nil},
	} {
		token, _, err := f.accounts.Invite(as(ctx, c.by), NewInvitation{By: c.by.ID, Team: c.team, TeamRole: TeamOwner})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.accounts.Join(as(ctx, guest), token, guest.ID); !errors.Is(err, c.want) {
			t.Errorf("the owner of another team joins with an invitation of %s: %v, expected %v", c.by.Email, err, c.want)
		}
	}
}

// A user cannot get the limits of more teams by deleting teams and creating others.
func TestNewTeamsOfADay(t *testing.T) {
	f := newFixture(t, Config{Teams: 1})
	user, boss := f.user(somebody), f.operator("boss@example.org")
	again := func(by Account) error {
		t.Helper()
		f.pass(time.Minute) // changes are limited
		team, err := f.accounts.CreateTeam(as(t.Context(), by), "stone", by.ID)
		if err != nil {
			return err
		}
		_, err = f.accounts.Delete(as(t.Context(), by), team.ID.String())
		return err
	}
	for range DefaultTeams {
		if err := again(user); err != nil {
			t.Fatal(err)
		}
	}
	if err := again(user); !errors.As(err, new(*TooSoon)) {
		t.Errorf("team %d of a day: %v", DefaultTeams+1, err)
	}
	for range DefaultTeams + 1 {
		if err := again(boss); err != nil {
			t.Errorf("an operator: %v", err)
		}
	}
	f.pass(24 * time.Hour)
	if err := again(user); err != nil {
		t.Errorf("on the next day: %v", err)
	}
	for _, c := range []struct{ teams, more int }{{1, DefaultTeams - 1}, {2 * DefaultTeams, 2 * DefaultTeams}} {
		f.accounts.Reload(Config{Teams: c.teams})
		made := 0
		for again(user) == nil {
			made++
		}
		if made != c.more {
			t.Errorf("with %d teams in the configuration: %d more on that day, expected %d", c.teams, made, c.more)
		}
		f.pass(24 * time.Hour)
	}
}

// A team whose name is the ID of a deleted one is not taken for it.
func TestTeamNamedLikeAnID(t *testing.T) {
	f := newFixture(t, Config{})
	gone, owner, _, _, _ := f.team("stone")
	if _, err := f.accounts.Delete(t.Context(), gone.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.CreateTeam(t.Context(), gone.ID.String(), owner.ID); err != nil {
		t.Fatal(err)
	}
	if found, err := f.accounts.FindTeam(gone.ID.String()); !errors.Is(err, ErrNoTeam) {
		t.Errorf("found %+v, %v", found, err)
	}
}

// A team that has as many members as it may have takes no other one, and can be read.
func TestFullTeam(t *testing.T) {
	f := newFixture(t, Config{})
	ctx := t.Context()
	team, _, _, member, _ := f.team("stone")
	for n := range maxMembers - 4 {
		if _, err := f.accounts.AddMember(ctx, team.ID, f.user(fmt.Sprintf("user%d@example.org", n)).Email, TeamViewer); err != nil {
			t.Fatal(err)
		}
	}
	late := f.user(somebody)
	token, _, err := f.accounts.Invite(ctx, NewInvitation{Team: team.ID, TeamRole: TeamMember})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.AddMember(ctx, team.ID, late.Email, TeamViewer); !errors.Is(err, ErrTooMany) {
		t.Errorf("one member more: %v, expected ErrTooMany", err)
	}
	if _, err := f.accounts.Join(ctx, token, late.ID); !errors.Is(err, ErrTooMany) {
		t.Errorf("one member more, invited: %v, expected ErrTooMany", err)
	}
	if _, err := f.accounts.SetMemberRole(ctx, team.ID, member.ID, TeamViewer); err != nil {
		t.Errorf("a lower role in a full team: %v", err)
	}
	f.reopen()
	if bad := f.accounts.Unreadable(); len(bad) > 0 {
		t.Errorf("unreadable: %q", bad)
	}
	if _, err := f.accounts.RemoveMember(ctx, team.ID, member.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Join(ctx, token, late.ID); err != nil {
		t.Errorf("the invitation, once there is a place: %v", err)
	}
}
