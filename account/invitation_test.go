package account

import (
	"errors"
	"testing"
	"time"
)

// Invitations that expired long ago are dropped, and the accounts and members that they admitted
// stay.
func TestOldInvitationsAreDropped(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationInvited})
	ctx := t.Context()
	team, _, _, _, _ := f.team("stone")
	guest := f.user("guest@example.org")
	invite := func(n NewInvitation) string {
		t.Helper()
		token, _, err := f.accounts.Invite(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	const valid = 24 * time.Hour
	invite(NewInvitation{Valid: valid})
	joined := invite(NewInvitation{Team: team.ID, TeamRole: TeamMember, Valid: valid})
	if _, err := f.accounts.Join(ctx, joined, guest.ID); err != nil {
		t.Fatal(err)
	}
	made, _, err := f.accounts.Register(ctx, Registrant{Email: somebody, Password: secret, Invitation: invite(NewInvitation{Valid: valid})})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pass time.Duration
		left int // with the one that is created then
	}{{valid + invitationKeep, 4}, {time.Hour, 2}} {
		f.pass(c.pass)
		invite(NewInvitation{Valid: MaxInvitationTime})
		for range 2 {
			if all, err := f.accounts.Invitations(ctx); err != nil || len(all) != c.left {
				t.Errorf("%d invitations, %v, expected %d", len(all), err, c.left)
			}
			f.reopen()
		}
	}
	if _, role, err := f.accounts.InTeam(team.ID, guest.ID); err != nil || role != TeamMember {
		t.Errorf("the member has the role %q, %v", role, err)
	}
	if _, err := f.accounts.Join(ctx, joined, made.ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("a dropped invitation: %v", err)
	}
	if _, err := f.accounts.Delete(ctx, made.ID.String()); err != nil {
		t.Errorf("delete an account whose invitation was dropped: %v", err)
	}
	if unreadable := f.accounts.Unreadable(); len(unreadable) > 0 {
		t.Errorf("unreadable: %q", unreadable)
	}
}

// An invitation that was used cannot be withdrawn, whether it created an account or an account
// joined a team with it.
func TestUsedInvitationsCannotBeWithdrawn(t *testing.T) {
	f := newFixture(t, Config{})
	ctx := t.Context()
	team, _, _, _, _ := f.team("stone")
	guest := f.user("guest@example.org")
	token, i, err := f.accounts.Invite(ctx, NewInvitation{Team: team.ID, TeamRole: TeamMember})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Join(ctx, token, guest.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Withdraw(ctx, i.ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("withdrawn after an account joined with it: %v", err)
	}
}
