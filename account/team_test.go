package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// user creates an account without a password.
func (f *fixture) user(email string) Account {
	f.Helper()
	_, a, err := f.accounts.Create(f.Context(), NewAccount{Email: email})
	if err != nil {
		f.Fatal(err)
	}
	return a
}

// team creates a team with two owners, a member and a viewer.
func (f *fixture) team(name string) (team Account, owner, other, member, viewer Account) {
	f.Helper()
	owner, other = f.user("owner@"+name+".test"), f.user("other@"+name+".test")
	member, viewer = f.user("member@"+name+".test"), f.user("viewer@"+name+".test")
	team, err := f.accounts.CreateTeam(f.Context(), name, owner.ID)
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []struct {
		who  Account
		role TeamRole
	}{{other, TeamOwner}, {member, TeamMember}, {viewer, TeamViewer}} {
		if _, err := f.accounts.AddMember(f.Context(), team.ID, m.who.Email, m.role); err != nil {
			f.Fatal(err)
		}
	}
	return team, owner, other, member, viewer
}

// describeTeams returns who is in which team, sorted.
func describeTeams(t testing.TB, a *Accounts) (all []string) {
	t.Helper()
	accounts, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range accounts {
		if !one.IsTeam() {
			continue
		}
		members, err := a.Members(t.Context(), one.ID)
		if err != nil {
			t.Fatal(err)
		}
		text := one.Team + ":"
		for _, m := range members {
			text += fmt.Sprintf(" %s=%s", m.Email, m.Role)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func as(ctx context.Context, a Account) context.Context {
	return WithActor(ctx, Actor{Account: a.ID, Via: "dashboard"})
}

// Members join, get other roles and leave, and a store that is opened again says the same.
func TestTeam(t *testing.T) {
	f := newFixture(t, Config{Teams: 1})
	ctx := t.Context()
	team, owner, other, member, viewer := f.team("stone")
	for who, want := range map[ID]TeamRole{owner.ID: TeamOwner, other.ID: TeamOwner, member.ID: TeamMember, viewer.ID: TeamViewer} {
		if found, role, err := f.accounts.InTeam(team.ID, who); err != nil || role != want || found.Team != "stone" {
			t.Errorf("%+v has the role %q, %v, expected %q", found, role, err, want)
		}
	}
	if all := f.accounts.Teams(member.ID); len(all) != 1 || all[0].Team.ID != team.ID || all[0].Role != TeamMember {
		t.Errorf("teams of a member: %+v", all)
	}
	if _, err := f.accounts.AddMember(ctx, team.ID, member.Email, TeamViewer); !errors.As(err, new(*Invalid)) {
		t.Errorf("a member twice: %v", err)
	}
	if _, err := f.accounts.RenameTeam(ctx, team.ID, "granite"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.SetMemberRole(ctx, team.ID, viewer.ID, TeamMember); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.SetMemberRole(ctx, team.ID, other.ID, TeamViewer); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.RemoveMember(ctx, team.ID, member.ID); err != nil {
		t.Fatal(err)
	}
	want := []string{"granite: owner@stone.test=owner viewer@stone.test=member other@stone.test=viewer"}
	if got := describeTeams(t, f.accounts); !slices.Equal(got, want) {
		t.Errorf("teams %q, expected %q", got, want)
	}
	issued := f.key(f.keys.Of(team.ID), NewKey{Name: "of the team"})
	f.reopen()
	if got := describeTeams(t, f.accounts); !slices.Equal(got, want) {
		t.Errorf("opened again: teams %q, expected %q", got, want)
	}
	if k, ok := f.keys.Check(issued.APIKey); !ok || k.Owner != team.ID || k.Account().Team != "granite" {
		t.Errorf("the team's key: %+v, %t", k, ok)
	}
	if found, err := f.accounts.FindTeam("granite"); err != nil || found.ID != team.ID {
		t.Errorf("by name: %+v, %v", found, err)
	}
	if _, err := f.accounts.AddMember(ctx, team.ID, member.Email, TeamViewer); err != nil {
		t.Errorf("a member comes back: %v", err)
	}
	if len(f.accounts.Unreadable()) > 0 {
		t.Errorf("unreadable: %q", f.accounts.Unreadable())
	}
	entries, err := f.accounts.Audit(ctx, AuditQuery{Account: team.ID, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, e := range slices.Backward(entries) {
		if e.What == "team "+team.ID.String() {
			did = append(did, e.Did)
		}
	}
	expected := []string{
		"create", fmt.Sprintf("add owner %s to", other.ID), fmt.Sprintf("add member %s to", member.ID), fmt.Sprintf("add viewer %s to", viewer.ID), "rename",
		fmt.Sprintf("make %s member of", viewer.ID), fmt.Sprintf("make %s viewer of", other.ID), fmt.Sprintf("remove %s from", member.ID), fmt.Sprintf("add viewer %s to", member.ID),
	}
	slices.Sort(did) // entries of the same millisecond are in random order
	slices.Sort(expected)
	if !slices.Equal(did, expected) {
		t.Errorf("the audit log has\n%q, expected\n%q", did, expected)
	}
}

// Nobody signs in to a team.
func TestTeamsCannotSignIn(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	team, _, _, _, _ := f.team("stone")
	id := team.ID.String()
	for what, do := range map[string]func() error{
		"reset":    func() error { _, _, err := f.accounts.Reset(ctx, id); return err },
		"role":     func() error { _, err := f.accounts.SetRole(ctx, id, RoleOperator); return err },
		"token":    func() error { _, _, err := f.accounts.CreateToken(ctx, team.ID, "x", MaxTokenTime); return err },
		"member":   func() error { _, err := f.accounts.AddMember(ctx, team.ID, id, TeamViewer); return err },
		"new team": func() error { _, err := f.accounts.CreateTeam(ctx, "x", team.ID); return err },
	} {
		if err := do(); !errors.Is(err, ErrTeam) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.accounts.Resume(Session(id + ".0")); !errors.Is(err, ErrSession) {
		t.Errorf("a session: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, "", "", netip.Addr{}); !errors.Is(err, ErrCredentials) {
		t.Errorf("sign in: %v", err)
	}
	if _, err := f.accounts.SetLimits(ctx, id, Limits{PerDay: 5}); err != nil {
		t.Errorf("limits: %v", err)
	}
	user := f.user(somebody)
	for what, do := range map[string]func() error{
		"member of a user's account": func() error { _, err := f.accounts.AddMember(ctx, user.ID, "owner@stone.test", TeamViewer); return err },
		"not a member":               func() error { _, err := f.accounts.RemoveMember(ctx, team.ID, user.ID); return err },
		"role of a stranger":         func() error { _, err := f.accounts.SetMemberRole(ctx, team.ID, user.ID, TeamOwner); return err },
	} {
		if err := do(); !errors.Is(err, ErrNoTeam) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A team keeps an owner who can sign in.
func TestLastOwner(t *testing.T) {
	f := newFixture(t, Config{})
	ctx := t.Context()
	team, owner, other, member, _ := f.team("stone")
	second, err := f.accounts.CreateTeam(ctx, "granite", owner.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Delete(ctx, owner.Email); !errors.Is(err, ErrLastOwner) || strings.Contains(err.Error(), "stone") ||
		!strings.Contains(err.Error(), `the only owner of the team "granite": make another`) {
		t.Errorf("delete the owner of two teams, of which one has another: %v", err)
	}
	if _, err := f.accounts.Disable(ctx, other.Email); err != nil { // who is no help
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"leave":  func() error { _, err := f.accounts.RemoveMember(as(ctx, owner), team.ID, owner.ID); return err },
		"demote": func() error { _, err := f.accounts.SetMemberRole(ctx, team.ID, owner.ID, TeamMember); return err },
		"delete": func() error { _, err := f.accounts.Delete(ctx, owner.Email); return err },
	} {
		if err := do(); !errors.Is(err, ErrLastOwner) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.accounts.Delete(ctx, owner.Email); err == nil || !strings.Contains(err.Error(), `the teams "granite", "stone"`) {
		t.Errorf("delete the last owner of two teams: %v", err)
	}
	if _, err := f.accounts.Delete(ctx, second.ID.String()); err != nil {
		t.Errorf("delete a team: %v", err)
	}
	if _, err := f.accounts.SetMemberRole(ctx, team.ID, member.ID, TeamOwner); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Delete(ctx, owner.Email); err != nil {
		t.Errorf("delete an owner beside another one: %v", err)
	}
	want := []string{"stone: member@stone.test=owner other@stone.test=owner viewer@stone.test=viewer"}
	if got := describeTeams(t, f.accounts); !slices.Equal(got, want) {
		t.Errorf("after the deletion: %q, expected %q", got, want)
	}
	if all := f.accounts.Teams(owner.ID); len(all) != 0 {
		t.Errorf("teams of a deleted account: %+v", all)
	}
}

// Users own as many teams as the configuration says, operators any number.
func TestNumberOfTeams(t *testing.T) {
	f := newFixture(t, Config{Teams: 1})
	user := f.user(somebody)
	_, boss, err := f.accounts.Create(t.Context(), NewAccount{Email: "boss@example.org", Role: RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	create := func(by Account) error {
		_, err := f.accounts.CreateTeam(as(t.Context(), by), "a", by.ID)
		return err
	}
	for range 2 {
		if err := create(boss); err != nil {
			t.Error(err)
		}
	}
	if err := create(user); err != nil || f.accounts.MayCreateTeam(&user) {
		t.Error(err)
	}
	if err := create(user); !errors.Is(err, ErrTooMany) {
		t.Errorf("a second team: %v", err)
	}
	if _, err := f.accounts.FindTeam("a"); err == nil || !strings.Contains(err.Error(), "more than one team") {
		t.Errorf("an ambiguous name: %v", err)
	}
}

// An invitation to a team admits one account that exists, or creates one.
func TestTeamInvitations(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationInvited})
	ctx := t.Context()
	team, owner, other, member, _ := f.team("stone")
	guest := f.user("guest@example.org")
	invite := func(by Account, email string) string {
		t.Helper()
		// The role of the account is not for a team to give.
		token, _, err := f.accounts.Invite(as(ctx, by), NewInvitation{Email: email, Role: RoleOperator, By: by.ID, Team: team.ID, TeamRole: TeamMember})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	token := invite(owner, guest.Email)
	if _, err := f.accounts.Join(ctx, token, member.ID); !errors.As(err, new(*Invalid)) {
		t.Errorf("an invitation for another address: %v", err)
	}
	if _, err := f.accounts.Join(as(ctx, guest), token, guest.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.RemoveMember(ctx, team.ID, guest.ID); err != nil {
		t.Fatal(err)
	}
	rejoin := func(when string) {
		t.Helper()
		if _, err := f.accounts.Join(as(ctx, guest), token, guest.ID); !errors.Is(err, ErrNoInvitation) {
			t.Errorf("%s, a removed member comes back with the old invitation: %v", when, err)
		}
	}
	rejoin("at once")
	f.reopen()
	rejoin("opened again")
	if _, err := f.accounts.RenameTeam(ctx, team.ID, "granite"); err != nil { // another revision
		t.Fatal(err)
	}
	f.reopen()
	rejoin("after another change")

	token = invite(owner, "")
	r := Registrant{Email: "new@example.org", Password: secret, Invitation: token}
	made, _, err := f.accounts.Register(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, role, err := f.accounts.InTeam(team.ID, made.ID); err != nil || role != TeamMember {
		t.Errorf("who registered with an invitation has the role %q, %v", role, err)
	}
	if made.Role != RoleUser {
		t.Errorf("the role %q", made.Role)
	}
	r.Email = "second@example.org"
	if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("used twice: %v", err)
	}

	token = invite(other, "")
	if open, err := f.accounts.TeamInvitations(ctx, team.ID); err != nil || len(open) != 1 {
		t.Errorf("open invitations: %+v, %v", open, err)
	}
	if _, err := f.accounts.SetMemberRole(ctx, team.ID, other.ID, TeamMember); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Join(ctx, token, guest.ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("an invitation of a former owner: %v", err)
	}
	r.Invitation = token
	if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("registration with an invitation of a former owner: %v", err)
	}
	withdrawn := invite(owner, "")
	open, err := f.accounts.TeamInvitations(ctx, team.ID)
	if err != nil || len(open) != 1 {
		t.Fatalf("open invitations: %+v, %v", open, err)
	}
	if _, err := f.accounts.WithdrawFrom(ctx, guest.ID, open[0].ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("withdrawn from another team: %v", err)
	}
	if _, err := f.accounts.WithdrawFrom(ctx, team.ID, open[0].ID); err != nil {
		t.Error(err)
	}
	if _, err := f.accounts.Joinable(withdrawn, guest.ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("a withdrawn invitation: %v", err)
	}
}

// A process that knows only old revisions of a team brings back neither a member that another
// process has removed nor a role that it has lowered.
func TestStaleTeam(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	open := func(store kv.Store) *Keyring {
		r, err := OpenKeyring(t.Context(), openAccounts(t, store, Config{Shared: true}))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	here := open(store)
	f := &fixture{T: t, store: store, accounts: here.accounts, keys: here, clock: newClock()}
	team, owner, other, member, viewer := f.team("stone")
	for range 8 { // because the order of two revisions is random
		stale := open(unreachable{store})
		if _, err := here.accounts.RemoveMember(t.Context(), team.ID, member.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := here.accounts.SetMemberRole(t.Context(), team.ID, other.ID, TeamViewer); err != nil {
			t.Fatal(err)
		}
		if _, err := stale.accounts.RemoveMember(t.Context(), team.ID, viewer.ID); err != nil { // a restriction does not need the newest row
			t.Fatal(err)
		}
		for what, r := range map[string]*Keyring{"here": here, "stale": stale, "opened": open(store)} {
			if err := r.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, role, err := r.accounts.InTeam(team.ID, owner.ID); err != nil || role != TeamOwner {
				t.Errorf("%s: the owner has the role %q, %v", what, role, err)
			}
			if _, role, _ := r.accounts.InTeam(team.ID, other.ID); role == TeamOwner {
				t.Errorf("%s: the lowered role is restored", what)
			}
			for _, gone := range []Account{member, viewer} {
				if _, role, err := r.accounts.InTeam(team.ID, gone.ID); !errors.Is(err, ErrNoTeam) {
					t.Errorf("%s: %s has the role %q, %v", what, gone.Email, role, err)
				}
			}
		}
		for _, again := range []Account{member, other, viewer} {
			if _, err := here.accounts.AddMember(t.Context(), team.ID, again.Email, TeamOwner); err != nil && !errors.As(err, new(*Invalid)) {
				t.Fatal(err)
			}
			if _, err := here.accounts.SetMemberRole(t.Context(), team.ID, again.ID, TeamOwner); err != nil {
				t.Fatal(err)
			}
		}
	}
}
