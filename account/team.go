package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"ashlar/limit"
)

// DefaultTeams is the default number of teams that a user may own.
const DefaultTeams = 3

// maxMembers is the maximum number of members of a team.
const maxMembers = 100

// newTeams is the rate limit for new teams of a user, as many a day as the user may own. Each has
// the limits of an account of its own, so without it a user could get more limits by deleting teams
// and creating others.
func newTeams(config Config) limit.Rate {
	n := max(DefaultTeams, config.Teams)
	return limit.Rate{PerSecond: float64(n) / (24 * 60 * 60), Burst: n}
}

// TeamRole determines what a member of a team may do.
type TeamRole string

// The roles in a team. Each includes those below it.
const (
	TeamOwner  TeamRole = "owner"  // also manages members, and may delete the team
	TeamMember TeamRole = "member" // also creates, changes and revokes keys
	TeamViewer TeamRole = "viewer" // sees keys, usage and failed requests
)

// TeamRoles lists the roles in a team, the lowest first.
func TeamRoles() []TeamRole { return []TeamRole{TeamViewer, TeamMember, TeamOwner} }

// Includes reports whether r may do everything that another role may.
func (r TeamRole) Includes(other TeamRole) bool {
	return slices.Index(TeamRoles(), r) >= slices.Index(TeamRoles(), other)
}

func (r TeamRole) check() error {
	if !slices.Contains(TeamRoles(), r) {
		return invalid(FieldRole, "unknown role %q (want %s, %s or %s)", string(r), TeamViewer, TeamMember, TeamOwner)
	}
	return nil
}

// Member is a member of a team.
type Member struct {
	Account ID        `json:"account"`
	Email   string    `json:"email"`
	Role    TeamRole  `json:"role"`
	Since   time.Time `json:"since"`
}

// Membership is a team of an account.
type Membership struct {
	Team Account  `json:"team"`
	Role TeamRole `json:"role"`
}

func checkTeamName(name string) error {
	if name == "" {
		return invalid(FieldName, "the team has no name (want 1 to %d bytes)", maxName)
	}
	return checkName(name)
}

// check returns ErrTeam if a team has something to sign in with.
func (p *person) check() error {
	if p.IsTeam() && (p.password != "" || p.reset != nil || p.identity != nil || p.factor != nil || len(p.tokens) > 0 || p.Role != RoleUser) {
		return ErrTeam
	}
	return nil
}

// CreateTeam creates a team with its first owner. A user may own as many teams as the
// configuration says, and create as many a day; operators and commands of the shell create any
// number.
func (a *Accounts) CreateTeam(ctx context.Context, name string, owner ID) (Account, error) {
	if err := checkTeamName(name); err != nil {
		return Account{}, err
	}
	by := actorOf(ctx).Account
	mayCreate := func() error {
		if _, err := a.memberNamed(owner.String()); err != nil {
			return err
		}
		return a.mayBecome(TeamOwner, owner, by)
	}
	if err := mayCreate(); err != nil { // before others have to wait
		return Account{}, err
	}
	if err := a.countActor(ctx); err != nil {
		return Account{}, err
	}
	unlock, err := a.lockToCreate(ctx)
	if err != nil {
		return Account{}, err
	}
	defer unlock()
	if err := mayCreate(); err != nil { // with the teams of other processes
		return Account{}, err
	}
	if !by.IsZero() && !a.isOperator(by) {
		if err := spend(a.policy.Load().byCreator, a.now(), by, "new teams"); err != nil {
			return Account{}, err
		}
	}
	p := &person{team: &teamRecord{Name: name, Members: []memberRecord{a.newMember(owner, TeamOwner)}}}
	p.Account = Account{ID: a.newID(), Team: name, Role: RoleUser, Created: wholeSeconds(a.now())}
	if err := a.put(ctx, onceDurable, p, "create"); err != nil {
		return Account{}, fmt.Errorf("account: create a team: %w", err)
	}
	return p.Account, nil
}

// newMember returns a new membership.
func (a *Accounts) newMember(account ID, role TeamRole) memberRecord {
	m := memberRecord{Account: account, Role: role, Since: toSeconds(a.now())}
	for m.ID.IsZero() {
		_, _ = rand.Read(m.ID[:]) // documented never to fail
	}
	return m
}

// memberNamed returns the account of a user that may become a member, given its ID or its e-mail
// address.
func (a *Accounts) memberNamed(idOrEmail string) (*person, error) {
	p, err := a.find(idOrEmail)
	switch {
	case err != nil:
		return nil, err
	case p.IsTeam():
		return nil, fmt.Errorf("%w: a team cannot be a member of a team", ErrTeam)
	case !p.Enabled():
		return nil, ErrDisabled
	}
	return p, nil
}

// countActor charges a change to the account that makes it. Commands of the shell are free.
func (a *Accounts) countActor(ctx context.Context) error {
	if by := actorOf(ctx); !by.Account.IsZero() {
		return a.countChange(by.Account)
	}
	return nil
}

// teamWithID returns a team that is not deleted.
func (a *Accounts) teamWithID(id ID) (*person, error) {
	h, err := a.holder(id)
	if err != nil {
		return nil, fmt.Errorf("%w: none has the ID %s", ErrNoTeam, id)
	}
	p := h.load()
	switch {
	case p.Unreadable != "":
		return nil, fmt.Errorf("%w: account %s: %s", ErrUnreadable, id, p.Unreadable)
	case p.team == nil:
		return nil, fmt.Errorf("%w: the account %s is a user's", ErrNoTeam, id)
	}
	return p, nil
}

// FindTeam returns a team by its ID, or by its name if only one team has it.
func (a *Accounts) FindTeam(idOrName string) (Account, error) {
	var id ID
	if id.UnmarshalText([]byte(idOrName)) == nil { // never a name, which could be chosen to deceive
		p, err := a.teamWithID(id)
		if err != nil {
			return Account{}, err
		}
		return a.described(p), nil
	}
	var named []Account
	a.mu.RLock()
	for _, h := range a.people {
		if p := h.load(); p.team != nil && !p.deleted && p.Team == idOrName {
			named = append(named, a.described(p))
		}
	}
	a.mu.RUnlock()
	switch len(named) {
	case 0:
		return Account{}, fmt.Errorf("%w: none has the ID or the name %q", ErrNoTeam, idOrName)
	case 1:
		return named[0], nil
	}
	ids := make([]string, len(named))
	for i, t := range named {
		ids[i] = t.ID.String()
	}
	slices.Sort(ids)
	return Account{}, fmt.Errorf("more than one team has the name %q (want one of the IDs %s)", idOrName, strings.Join(ids, ", "))
}

// InTeam returns a team and the role of a member in it, or ErrNoTeam if the account is not a
// member.
func (a *Accounts) InTeam(team, member ID) (Account, TeamRole, error) {
	p, err := a.teamWithID(team)
	if err != nil {
		return Account{}, "", err
	}
	role, ok := a.roleIn(p, member)
	if !ok {
		return Account{}, "", fmt.Errorf("%w: the account %s is not a member", ErrNoTeam, member)
	}
	return a.described(p), role, nil
}

// roleIn returns the role of an account in a team, or false if it is not a member.
func (a *Accounts) roleIn(p *person, member ID) (TeamRole, bool) {
	for _, m := range a.current(p.team) {
		if m.Account == member {
			return m.Role, true
		}
	}
	return "", false
}

// Teams returns the teams of which an account is a member, sorted by name.
func (a *Accounts) Teams(member ID) (all []Membership) {
	a.mu.RLock()
	ids := make([]ID, 0, len(a.teamsOf[member]))
	for id := range a.teamsOf[member] {
		ids = append(ids, id)
	}
	a.mu.RUnlock()
	for _, id := range ids {
		if team, role, err := a.InTeam(id, member); err == nil {
			all = append(all, Membership{team, role})
		}
	}
	slices.SortFunc(all, func(a, b Membership) int {
		return cmp.Or(cmp.Compare(a.Team.Team, b.Team.Team), slices.Compare(a.Team.ID[:], b.Team.ID[:]))
	})
	return all
}

// owned returns the teams of which an account is an owner.
func (a *Accounts) owned(owner ID) []Membership {
	return slices.DeleteFunc(a.Teams(owner), func(m Membership) bool { return m.Role != TeamOwner })
}

// MayCreateTeam reports whether a user may create a team.
func (a *Accounts) MayCreateTeam(user *Account) bool {
	return a.mayBecome(TeamOwner, user.ID, user.ID) == nil
}

// mayBecome returns ErrTooMany if an account that another one gives a role in a team would own more
// teams than a user may. Operators, and the shell (the zero ID), are not limited.
func (a *Accounts) mayBecome(role TeamRole, member, by ID) error {
	if role != TeamOwner || by.IsZero() || a.isOperator(member) || a.isOperator(by) {
		return nil
	}
	if owned, most := len(a.owned(member)), a.policy.Load().teams; owned >= most {
		return fmt.Errorf("%w: the account owns as many teams as it may own (%d)", ErrTooMany, most)
	}
	return nil
}

// learnFor is learn before a member gets a role, if [Accounts.mayBecomeNow] needs it.
func (a *Accounts) learnFor(ctx context.Context, role TeamRole) error {
	if role != TeamOwner {
		return nil
	}
	return a.learn(ctx)
}

// mayBecomeNow is mayBecome with what other processes of a shared store have changed. The write lock is held, and the lock of
// changes.
func (a *Accounts) mayBecomeNow(ctx context.Context, role TeamRole, member, by ID) error {
	if err := a.mayBecome(role, member, by); err != nil || role != TeamOwner {
		return err
	}
	if err := a.catchUpIfUncertain(ctx); err != nil {
		return err
	}
	return a.mayBecome(role, member, by)
}

func (a *Accounts) isOperator(id ID) bool {
	h, err := a.holder(id)
	return err == nil && h.load().Role == RoleOperator
}

// Members returns the members of a team: owners first, then by e-mail address.
func (a *Accounts) Members(_ context.Context, team ID) ([]Member, error) {
	p, err := a.teamWithID(team)
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, m := range a.current(p.team) {
		if h, err := a.holder(m.Account); err == nil {
			all = append(all, Member{m.Account, h.load().Email, m.Role, m.Since.time()})
		}
	}
	slices.SortFunc(all, func(a, b Member) int {
		rank := func(m Member) int { return -slices.Index(TeamRoles(), m.Role) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Email, b.Email))
	})
	return all, nil
}
