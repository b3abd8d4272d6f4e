package accounttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// teams describes who is in which team.
func (p *process) teams() string {
	p.Helper()
	accounts, err := p.accounts.List(p.Context())
	p.need(err)
	var all []string
	for _, a := range accounts {
		if a.IsTeam() {
			members, err := p.accounts.Members(p.Context(), a.ID)
			p.need(err)
			for _, m := range members {
				all = append(all, fmt.Sprintf("%s is %s of %s", m.Email, m.Role, a.Team))
			}
		}
	}
	return strings.Join(all, ", ")
}

// RunTeams tests that every change of a team is made completely or not at all, by processes that
// are killed at each step of it. reopen returns a store, always the same, as a process finds it
// that is started after another was killed.
func RunTeams(t *testing.T, reopen func(*testing.T) kv.Store) {
	now := time.Date(2026, 5, 1, 12, 5, 0, 0, time.UTC)
	p := open(t, reopen(t), &now)
	owner, other := p.join("owner@example.org", here).account, p.join("other@example.org", there).account
	invited := owner.ID // reads as nobody's
	var team account.Account
	var token, letter string
	issue := func(p *process) (err error) {
		token, _, err = p.accounts.Invite(p.Context(), account.NewInvitation{By: owner.ID, Team: team.ID, TeamRole: account.TeamMember})
		if err == nil {
			err = p.accounts.RequestRegistration(p.Context(), account.Registrant{Email: "new@example.org", Invitation: token, Address: there})
		}
		letter = p.mailer.last.Token
		return err
	}
	enter := func(p *process) error {
		if a, err := p.accounts.Find("new@example.org"); err == nil {
			invited = a.ID
			_, err = p.accounts.Join(p.Context(), token, invited)
			return err
		}
		a, _, err := p.accounts.Register(p.Context(), account.Registrant{Token: letter, Password: secret, Address: there})
		invited = a.ID
		return err
	}
	for _, c := range []struct {
		do    func(p *process) error
		after string
	}{
		{func(p *process) (err error) {
			team, err = p.accounts.CreateTeam(p.Context(), "stone", owner.ID)
			return err
		}, "owner@example.org is owner of stone"},
		{func(p *process) error {
			_, err := p.accounts.AddMember(p.Context(), team.ID, other.Email, account.TeamOwner)
			return err
		}, "other@example.org is owner of stone, owner@example.org is owner of stone"},
		{func(p *process) error {
			if letter == "" {
				p.need(issue(open(p.T, reopen(p.T), p.now)))
				return errStopped // the next process knows of it
			}
			return enter(p)
		}, "other@example.org is owner of stone, owner@example.org is owner of stone, new@example.org is member of stone"},
		{func(p *process) error {
			_, err := p.accounts.SetMemberRole(p.Context(), team.ID, other.ID, account.TeamViewer)
			return err
		}, "owner@example.org is owner of stone, new@example.org is member of stone, other@example.org is viewer of stone"},
		{func(p *process) error {
			_, err := p.accounts.RemoveMember(p.Context(), team.ID, invited)
			return err
		}, "owner@example.org is owner of stone, other@example.org is viewer of stone"},
	} {
		changedEverywhere(t, reopen, &now, c.do, c.after)
		p = open(t, reopen(t), &now) // the change may have been made by a process that could not say so
		found, err := p.accounts.FindTeam("stone")
		p.need(err)
		team = found
		if a, err := p.accounts.Find("new@example.org"); err == nil {
			invited = a.ID
		}
	}
	p = open(t, reopen(t), &now)
	if _, err := p.accounts.Join(t.Context(), token, invited); !errors.Is(err, account.ErrNoInvitation) {
		t.Errorf("a removed member comes back: %v", err)
	}
	p.runTeamDeletion(reopen, team)
}

// changedEverywhere makes a change of a team by processes each of which is killed one step later
// than the one before.
func changedEverywhere(t *testing.T, reopen func(*testing.T) kv.Store, now *time.Time, do func(*process) error, after string) {
	t.Helper()
	before := open(t, reopen(t), now).teams()
	for steps := range 50 {
		*now = now.Add(time.Minute) // attempts and changes are limited
		p := open(t, &stopping{Store: reopen(t), left: steps}, now)
		switch found := p.teams(); found {
		case after:
			if steps < 2 {
				t.Errorf("%q took %d steps, so this test does not see them", after, steps)
			}
			return
		case before:
			if err := do(p); err != nil && !errors.Is(err, errStopped) {
				t.Fatalf("after %d steps: %v", steps, err)
			}
		default:
			t.Fatalf("after %d steps: %q, expected %q or %q", steps, found, before, after)
		}
	}
	t.Fatalf("%q does not end", after)
}

// runTeamDeletion tests that a team is deleted with its keys and their usage.
func (p *process) runTeamDeletion(reopen func(*testing.T) kv.Store, team account.Account) {
	t := p.T
	u := user{account: account.Account{ID: team.ID, Email: team.Team}, ids: []account.KeyID{account.KeyID(team.ID)}}
	for range 3 {
		issued, err := p.keys.Of(team.ID).Create(t.Context(), account.NewKey{Name: "of the team"})
		p.need(err)
		u.ids, u.apiKeys = append(u.ids, issued.Key.ID), append(u.apiKeys, issued.APIKey)
	}
	p.use(u)
	*p.now = p.now.Add(time.Hour)
	p.use(u) // and adds the first hour up
	p.holds(u, there, true)
	for steps := 0; ; steps++ {
		if steps > 200 {
			t.Fatal("it does not end")
		}
		one := open(t, &stopping{Store: reopen(t), left: steps}, p.now)
		_, err := one.accounts.FindTeam(team.ID.String())
		for i, text := range u.apiKeys {
			if _, ok := one.keys.Check(text); ok != (err == nil) {
				t.Errorf("after %d steps, key %d: accepted %t, the team: %v", steps, i, ok, err)
			}
		}
		if err == nil {
			_, err = one.accounts.Delete(t.Context(), team.ID.String())
		} else {
			err = one.accounts.Sweep(t.Context())
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) {
			t.Fatalf("after %d steps: %v", steps, err)
		}
	}
	last := open(t, reopen(t), p.now)
	last.need(last.usage.Flush(t.Context()))
	if found := last.teams(); found != "" {
		t.Errorf("after the deletion: %q", found)
	}
	known := last.keys.Known()
	if slices.ContainsFunc(u.ids, func(id account.KeyID) bool { return known[id] }) {
		t.Error("keys of the team are left")
	}
	*p.now = p.now.Add(2 * time.Hour)
	last.need(last.usage.Flush(t.Context()))
	*p.now = p.now.Add(25 * time.Hour)
	last.need(last.usage.Clean(t.Context()))
	last.holds(u, there.Prev(), false)
}
