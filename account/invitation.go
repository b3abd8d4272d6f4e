package account

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// DefaultInvitationTime is how long an invitation is valid by default, MaxInvitationTime
// the maximum.
const (
	DefaultInvitationTime = 7 * 24 * time.Hour
	MaxInvitationTime     = 90 * 24 * time.Hour
)

// invitationKeep is how long an invitation is kept after it has expired, for the lists of invitations.
const invitationKeep = 30 * 24 * time.Hour

// NewInvitation describes an invitation to be created.
type NewInvitation struct {
	Email string        `json:"email,omitempty"` // required e-mail address of the account; empty: any
	Role  Role          `json:"role,omitempty"`  // of the account; empty: RoleUser
	By    ID            `json:"by,omitzero"`     // the inviting operator's account; zero: the command line
	Valid time.Duration `json:"valid,omitempty"` // 0: DefaultInvitationTime
	// Team is the team that the invitation admits a member to, with TeamRole; zero: none.
	Team     ID       `json:"team,omitzero"`
	TeamRole TeamRole `json:"teamRole,omitempty"`
}

// Invitation describes an invitation without its token. It can be used once.
type Invitation struct {
	ID        string    `json:"id"`
	Email     string    `json:"email,omitempty"`
	Role      Role      `json:"role"`
	By        ID        `json:"by,omitzero"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
	Withdrawn time.Time `json:"withdrawn,omitzero"`
	UsedBy    ID        `json:"usedBy,omitzero"` // the account that was created or joined a team with it
	Team      ID        `json:"team,omitzero"`   // that it admits a member to; zero: none
	TeamRole  TeamRole  `json:"teamRole,omitempty"`
	Unsaved   bool      `json:"unsaved,omitempty"` // it was withdrawn, but that is not durable

	number uint64
}

// Open reports whether the invitation can still be used.
func (i *Invitation) Open(now time.Time) bool {
	return i.UsedBy.IsZero() && i.Withdrawn.IsZero() && now.Before(i.Expires)
}

// invitationRecord is the JSON of a row of invitationRevisions. The use of an invitation
// is recorded in the row of the account created with it.
type invitationRecord struct {
	Email     string   `json:"email,omitempty"`
	Role      Role     `json:"role"`
	By        ID       `json:"by,omitzero"`
	Created   seconds  `json:"created"`
	Expires   seconds  `json:"expires"`
	Withdrawn seconds  `json:"withdrawn,omitzero"`
	Team      ID       `json:"team,omitzero"`
	TeamRole  TeamRole `json:"teamRole,omitempty"`
}

func decodeInvitation(token hash, number uint64, value []byte) (i Invitation, err error) {
	var r invitationRecord
	if err := decodeRecord(value, &r); err != nil {
		return i, err
	}
	if err := r.Role.check(); err != nil {
		return i, err
	}
	if !r.Team.IsZero() {
		if err := r.TeamRole.check(); err != nil {
			return i, err
		}
	}
	return Invitation{
		ID: invitationID(token), Email: r.Email, Role: r.Role, By: r.By, Created: r.Created.time(),
		Expires: r.Expires.time(), Withdrawn: r.Withdrawn.time(), number: number,
		Team: r.Team, TeamRole: r.TeamRole,
	}, nil
}

func invitationID(token hash) string { return hex.EncodeToString(token[:8]) }

// accepts returns an error if the invitation is for another e-mail address.
func (i *Invitation) accepts(email string) error {
	if i.Email != "" && i.Email != email {
		return invalid(FieldEmail, "the invitation is for another e-mail address: use that one, or ask the person who invited you for another invitation")
	}
	return nil
}

// placeOfInvitation returns the place of an invitation's rows, by the hash of its token.
func placeOfInvitation(token hash) place { return place{invitationRevisions, string(token[:])} }

// readInvitations reads all invitations. It must be called after readPeople.
func (a *Accounts) readInvitations(ctx context.Context) error {
	rows, err := newest(ctx, a.rows.store, invitationRevisions, len(hash{}))
	if err != nil {
		return err
	}
	all := make(map[hash]Invitation, len(rows))
	a.mu.Lock()
	defer a.mu.Unlock()
	for partition, row := range rows {
		token := hash([]byte(partition))
		if a.rows.isUnsaved(placeOfInvitation(token)) {
			all[token] = a.invitations[token]
			continue
		}
		i, err := decodeInvitation(token, row.number, row.value)
		if err != nil {
			a.rows.disable(placeOfInvitation(token), "invitation "+invitationID(token), row.number, err)
			continue
		}
		a.rows.enable(placeOfInvitation(token))
		all[token] = i
	}
	for id, h := range a.people {
		if token := h.load().invitation; token != nil {
			if i, ok := all[*token]; ok {
				i.UsedBy = id
				all[*token] = i
			}
		}
	}
	a.invitations = all
	return nil
}

// CheckInvitation returns an invitation with what n leaves out, or the error with which Invite refuses it. Invite
// checks more of one to a team.
func (a *Accounts) CheckInvitation(n NewInvitation) (complete NewInvitation, err error) {
	n.Role, n.Valid = cmp.Or(n.Role, RoleUser), cmp.Or(n.Valid, DefaultInvitationTime)
	if err := n.Role.check(); err != nil {
		return n, err
	}
	if n.Valid < time.Minute || n.Valid > MaxInvitationTime {
		return n, invalid(FieldExpires, "valid for %v: expected from 1 minute to %d days", n.Valid, int(MaxInvitationTime.Hours()/24))
	}
	if n.Email == "" {
		return n, nil
	}
	if n.Email, err = foldEmail(n.Email); err != nil {
		return n, err
	}
	if a.withEmail(n.Email) != nil && n.Team.IsZero() {
		return n, invalid(FieldEmail, "there is an account with the e-mail address %s", n.Email)
	}
	return n, nil
}

// Invite creates an invitation and returns its token, which cannot be read again.
func (a *Accounts) Invite(ctx context.Context, n NewInvitation) (token string, i Invitation, err error) {
	if n, err = a.CheckInvitation(n); err != nil {
		return "", i, err
	}
	if !n.Team.IsZero() {
		if err := a.teamInvitation(ctx, &n); err != nil {
			return "", i, err
		}
	}
	token = newSecret()
	h, _ := hashOf(token)
	created := wholeSeconds(a.now())
	i = Invitation{ID: invitationID(h), Email: n.Email, Role: n.Role, By: n.By, Created: created, Expires: wholeSeconds(created.Add(n.Valid)), Team: n.Team, TeamRole: n.TeamRole}
	a.write.Lock()
	defer a.write.Unlock()
	if err := a.dropInvitations(ctx); err != nil {
		return "", Invitation{}, fmt.Errorf("account: drop expired invitations: %w", err)
	}
	if err := a.putInvitation(ctx, onceDurable, h, i, "create"); err != nil {
		return "", Invitation{}, fmt.Errorf("account: invite: %w", err)
	}
	return token, i, nil
}

// dropInvitations drops invitations that expired long ago, used ones too. The write lock is held.
func (a *Accounts) dropInvitations(ctx context.Context) error {
	var gone []hash
	a.mu.RLock()
	for h, i := range a.invitations {
		if a.now().Sub(i.Expires) > invitationKeep {
			gone = append(gone, h)
		}
	}
	a.mu.RUnlock()
	return a.forgetInvitations(ctx, gone)
}

// forgetInvitations durably removes invitations. The write lock is held.
func (a *Accounts) forgetInvitations(ctx context.Context, gone []hash) error {
	if len(gone) == 0 {
		return nil
	}
	for _, token := range gone {
		if err := a.rows.store.Drop(ctx, invitationRevisions, token[:]); err != nil {
			return err
		}
	}
	if err := a.rows.store.Sync(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, token := range gone {
		a.rows.forget(placeOfInvitation(token))
		delete(a.invitations, token)
	}
	return nil
}

// Withdraw invalidates an unused invitation.
func (a *Accounts) Withdraw(ctx context.Context, id string) (Invitation, error) {
	a.write.Lock()
	defer a.write.Unlock()
	h, i, ok := a.invitationByID(id)
	if !ok {
		return Invitation{}, fmt.Errorf("%w: none has the ID %q", ErrNoInvitation, id)
	}
	if !i.Open(a.now()) {
		return Invitation{}, fmt.Errorf("%w: %s", ErrNoInvitation, id)
	}
	i.Withdrawn = wholeSeconds(a.now())
	i.number = a.rows.next(placeOfInvitation(h), i.number)
	if err := a.putInvitation(ctx, atOnce, h, i, "withdraw"); err != nil {
		return Invitation{}, fmt.Errorf("account: withdraw invitation %s: %w", id, err)
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.describedInvitation(h, i), nil
}

// Invitations returns all invitations, newest first.
func (a *Accounts) Invitations(context.Context) ([]Invitation, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	all := make([]Invitation, 0, len(a.invitations))
	for h, i := range a.invitations {
		all = append(all, a.describedInvitation(h, i))
	}
	slices.SortFunc(all, func(a, b Invitation) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// describedInvitation returns what callers see of an invitation. a.mu is held.
func (a *Accounts) describedInvitation(h hash, i Invitation) Invitation {
	i.Unsaved = a.rows.isUnsaved(placeOfInvitation(h))
	if by, ok := a.joined[h]; ok {
		i.UsedBy = by
	}
	return i
}

// Invitation returns the open invitation with a token, or ErrNoInvitation. It does not
// consume the invitation.
func (a *Accounts) Invitation(token string) (Invitation, error) {
	_, i, err := a.invited(token)
	return i, err
}

func (a *Accounts) invited(token string) (hash, Invitation, error) {
	h, _ := hashOf(token)
	i, err := a.invitationOf(h)
	return h, i, err
}

// invitationOf returns the open invitation whose token has a hash, or ErrNoInvitation.
func (a *Accounts) invitationOf(h hash) (Invitation, error) {
	a.mu.RLock()
	i, ok := a.invitations[h]
	i = a.describedInvitation(h, i)
	a.mu.RUnlock()
	if !ok || !a.Valid(i) {
		return Invitation{}, ErrNoInvitation
	}
	return i, nil
}

func (a *Accounts) invitationByID(id string) (hash, Invitation, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for h, i := range a.invitations {
		if i.ID == id {
			return h, a.describedInvitation(h, i), true
		}
	}
	return hash{}, Invitation{}, false
}

// putInvitation stores a revision of an invitation and makes it current in memory. The
// write lock is held.
func (a *Accounts) putInvitation(ctx context.Context, o order, h hash, i Invitation, did string) error {
	record := invitationRecord{i.Email, i.Role, i.By, toSeconds(i.Created), toSeconds(i.Expires), toSeconds(i.Withdrawn), i.Team, i.TeamRole}
	row := unsavedRow{number: i.number, record: record, what: "invitation " + i.ID, did: did}
	return a.rows.put(ctx, o, placeOfInvitation(h), row, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.invitations[h] = i
	})
}
