package account

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// changeTeam edits a copy of a team and stores it as the next revision.
func (a *Accounts) changeTeam(ctx context.Context, team ID, doing string, o order, edit func(*teamRecord) error) (Account, error) {
	if _, err := a.teamWithID(team); err != nil {
		return Account{}, err
	}
	return a.changed(ctx, team.String(), doing, o, func(p *person) error {
		t := teamRecord{Name: p.team.Name, Members: a.current(p.team)}
		if err := edit(&t); err != nil {
			return err
		}
		if o == onceDurable { // a restriction must not wait
			if err := a.countActor(ctx); err != nil {
				return err
			}
		}
		p.team, p.Team = &t, t.Name
		return nil
	})
}

// RenameTeam changes the name of a team.
func (a *Accounts) RenameTeam(ctx context.Context, team ID, name string) (Account, error) {
	if err := checkTeamName(name); err != nil {
		return Account{}, err
	}
	return a.changeTeam(ctx, team, "rename", onceDurable, func(t *teamRecord) error {
		t.Name = name
		return nil
	})
}

// AddMember makes an account, given by its ID or its e-mail address, a member of a team.
func (a *Accounts) AddMember(ctx context.Context, team ID, idOrEmail string, role TeamRole) (Account, error) {
	if err := role.check(); err != nil {
		return Account{}, err
	}
	member, err := a.memberNamed(idOrEmail)
	if err != nil {
		return Account{}, err
	}
	if err := a.learnFor(ctx, role); err != nil {
		return Account{}, err
	}
	return a.changeTeam(ctx, team, fmt.Sprintf("add %s %s to", role, member.ID), onceDurable, func(t *teamRecord) error {
		return a.join(ctx, t, member.ID, role, actorOf(ctx).Account)
	})
}

// join adds a member to a team that another account, or the shell (the zero ID), has added or
// invited.
func (a *Accounts) join(ctx context.Context, t *teamRecord, member ID, role TeamRole, by ID) error {
	if t.find(member) >= 0 {
		return invalid(FieldEmail, "the account is a member of the team already")
	}
	if len(t.Members) >= maxMembers {
		return fmt.Errorf("%w: the team has %d members, and may have %d: remove one first", ErrTooMany, len(t.Members), maxMembers)
	}
	if err := a.mayBecomeNow(ctx, role, member, by); err != nil {
		return err
	}
	t.Members = append(t.Members, a.newMember(member, role))
	return nil
}

// SetMemberRole changes the role of a member of a team. A lower role takes effect before it is
// stored, like every restriction.
func (a *Accounts) SetMemberRole(ctx context.Context, team, member ID, role TeamRole) (Account, error) {
	if err := role.check(); err != nil {
		return Account{}, err
	}
	of, before, err := a.InTeam(team, member)
	if err != nil || before == role {
		return of, err
	}
	if err := a.learnFor(ctx, role); err != nil {
		return Account{}, err
	}
	o := order(!role.Includes(before))
	return a.changeTeam(ctx, team, fmt.Sprintf("make %s %s of", member, role), o, func(t *teamRecord) error {
		i := t.find(member)
		if i < 0 {
			return fmt.Errorf("%w: the account %s is not a member", ErrNoTeam, member) // removed concurrently
		}
		m := t.Members[i]
		if role.Includes(m.Role) {
			t.Members[i].Role = role
			return a.mayBecomeNow(ctx, role, member, actorOf(ctx).Account)
		}
		// Another membership, so that a process which does not know yet cannot restore the role.
		t.end(i)
		lower := a.newMember(member, role)
		lower.Since = m.Since
		t.Members = append(t.Members, lower)
		return a.keepsOwner(t, m.Role)
	})
}

// RemoveMember removes a member from a team at once, also on behalf of the member.
func (a *Accounts) RemoveMember(ctx context.Context, team, member ID) (Account, error) {
	return a.changeTeam(ctx, team, fmt.Sprintf("remove %s from", member), atOnce, func(t *teamRecord) error {
		i := t.find(member)
		if i < 0 {
			return fmt.Errorf("%w: the account %s is not a member", ErrNoTeam, member)
		}
		role := t.Members[i].Role
		t.end(i)
		return a.keepsOwner(t, role)
	})
}

// keepsOwner returns ErrLastOwner if a team has lost its last owner who can sign in, by a change
// of a member who had a role.
func (a *Accounts) keepsOwner(t *teamRecord, was TeamRole) error {
	if was != TeamOwner || a.hasOwner(t.Members, ID{}) {
		return nil
	}
	return fmt.Errorf("%w of the team %q: make another member an owner first, or delete the team", ErrLastOwner, t.Name)
}

// hasOwner reports whether an account other than one is an owner and can be used.
func (a *Accounts) hasOwner(members []memberRecord, except ID) bool {
	for _, m := range members {
		if m.Role != TeamOwner || m.Account == except {
			continue
		}
		if h, err := a.holder(m.Account); err == nil && h.load().Enabled() {
			return true
		}
	}
	return false
}

// leavesOwners returns ErrLastOwner, naming the teams, if an account cannot be deleted because
// teams have no other owner who can sign in.
func (a *Accounts) leavesOwners(id ID) error {
	var names []string
	for _, m := range a.owned(id) {
		if p, err := a.teamWithID(m.Team.ID); err == nil && !a.hasOwner(a.current(p.team), id) {
			names = append(names, strconv.Quote(m.Team.Team))
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w of the team %s: make another member an owner first, or delete the team", ErrLastOwner, names[0])
	}
	return fmt.Errorf("%w of the teams %s: make another member of each an owner first, or delete them", ErrLastOwner, strings.Join(names, ", "))
}

// Join consumes an invitation to a team and makes an account a member.
func (a *Accounts) Join(ctx context.Context, token string, member ID) (Account, error) {
	h, _ := hashOf(token)
	return a.joinWith(ctx, h, member)
}

func (a *Accounts) joinWith(ctx context.Context, h hash, member ID) (Account, error) {
	if err := a.learn(ctx); err != nil {
		return Account{}, err
	}
	i, err := a.joinable(h, member)
	if err != nil {
		return Account{}, err
	}
	return a.changeTeam(ctx, i.Team, fmt.Sprintf("join as %s, with invitation %s,", i.TeamRole, i.ID), onceDurable, func(t *teamRecord) error {
		if err := a.catchUpIfUncertain(ctx); err != nil {
			return err
		}
		if _, err := a.joinable(h, member); err != nil {
			return err // used concurrently
		}
		t.Joined = &joinedRecord{h, member}
		return a.join(ctx, t, member, i.TeamRole, i.By)
	})
}

// Joinable returns the invitation to a team that a token gives an account, or ErrNoInvitation. It
// does not consume the invitation.
func (a *Accounts) Joinable(token string, member ID) (Invitation, error) {
	h, _ := hashOf(token)
	return a.joinable(h, member)
}

// joinable also accepts an invitation that the account itself was created with.
func (a *Accounts) joinable(h hash, member ID) (Invitation, error) {
	a.mu.RLock()
	i, ok := a.invitations[h]
	_, joined := a.joined[h]
	a.mu.RUnlock()
	if i.UsedBy == member {
		i.UsedBy = ID{}
	}
	if !ok || joined || i.Team.IsZero() || !a.Valid(i) {
		return Invitation{}, ErrNoInvitation
	}
	p, err := a.memberNamed(member.String())
	if err != nil {
		return Invitation{}, err
	}
	return i, i.accepts(p.Email)
}

// Valid reports whether an invitation can be used. It ends when the account that made it may not
// invite any more.
func (a *Accounts) Valid(i Invitation) bool {
	if !i.Open(a.now()) {
		return false
	}
	var team *person
	if !i.Team.IsZero() {
		var err error
		if team, err = a.teamWithID(i.Team); err != nil {
			return false
		}
	}
	if i.By.IsZero() {
		return true
	}
	h, err := a.holder(i.By)
	if err != nil || !h.load().Enabled() {
		return false
	}
	if h.load().Role == RoleOperator {
		return true
	}
	if team == nil {
		return false
	}
	role, _ := a.roleIn(team, i.By)
	return role == TeamOwner
}

// joinNew makes a new account a member of the team that it was invited to. If that fails, the
// invitation's link can be opened again, by this account only.
func (a *Accounts) joinNew(ctx context.Context, p *person) error {
	by := actorOf(ctx)
	by.Account = p.ID
	_, err := a.joinWith(WithActor(ctx, by), *p.invitation, p.ID)
	return err
}

// teamInvitation checks a new invitation to a team.
func (a *Accounts) teamInvitation(ctx context.Context, n *NewInvitation) error {
	if _, err := a.teamWithID(n.Team); err != nil {
		return err
	}
	n.Role = RoleUser
	if err := n.TeamRole.check(); err != nil {
		return err
	}
	if n.Email != "" {
		if p := a.withEmail(n.Email); p != nil {
			if _, _, err := a.InTeam(n.Team, p.ID); err == nil {
				return invalid(FieldEmail, "%s is a member of the team already", n.Email)
			}
		}
	}
	return a.countActor(ctx)
}

// TeamInvitations returns the invitations to a team that can still be used, newest first.
func (a *Accounts) TeamInvitations(ctx context.Context, team ID) (open []Invitation, err error) {
	all, err := a.Invitations(ctx)
	for _, i := range all {
		if i.Team == team && a.Valid(i) {
			open = append(open, i)
		}
	}
	return open, err
}

// WithdrawFrom is Withdraw for an invitation to a team.
func (a *Accounts) WithdrawFrom(ctx context.Context, team ID, id string) (Invitation, error) {
	if _, i, ok := a.invitationByID(id); !ok || i.Team != team {
		return Invitation{}, fmt.Errorf("%w: none to this team has the ID %q", ErrNoInvitation, id)
	}
	return a.Withdraw(ctx, id)
}
