package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"ashlar/account/password"
	"ashlar/kv"
)

// accountRecord is the JSON of a row of accountRevisions.
type accountRecord struct {
	Email      string          `json:"email,omitempty"`
	Role       Role            `json:"role"`
	Created    seconds         `json:"created"`
	Verified   seconds         `json:"verified,omitzero"`
	Disabled   seconds         `json:"disabled,omitzero"`
	Password   string          `json:"password,omitempty"`
	Epoch      uint64          `json:"epoch,omitempty"`
	Reset      *resetRecord    `json:"reset,omitempty"`
	Invitation *hash           `json:"invitation,omitempty"`
	Limits     Limits          `json:"limits,omitzero"`
	Tokens     []tokenRecord   `json:"tokens,omitempty"`
	Factor     *factorRecord   `json:"factor,omitempty"`
	Identity   *identityRecord `json:"identity,omitempty"`
	Team       *teamRecord     `json:"team,omitempty"`
}

// deletedRecord is the JSON of the last row of a deleted account.
type deletedRecord struct {
	Deleted    bool  `json:"deleted"`
	Invitation *hash `json:"invitation,omitempty"`
}

type resetRecord struct {
	Hash   hash    `json:"hash"`
	Until  seconds `json:"until"`
	Mailed bool    `json:"mailed,omitempty"`
}

// record returns the row to store for p.
func (p *person) record() any {
	if p.deleted {
		return deletedRecord{true, p.invitation}
	}
	r := accountRecord{
		Email: p.Email, Role: p.Role, Created: toSeconds(p.Created), Verified: toSeconds(p.Verified), Disabled: toSeconds(p.Disabled),
		Password: p.password, Epoch: p.epoch, Invitation: p.invitation, Limits: p.Limits, Tokens: p.tokens, Factor: p.factor, Identity: p.identity, Team: p.team,
	}
	if p.reset != nil {
		r.Reset = &resetRecord{*p.reset, toSeconds(p.Resets), p.resetMailed}
	}
	return r
}

// decodeAccount is the reverse of record.
func decodeAccount(id ID, number uint64, value []byte) (*person, error) {
	if number == lastRevision {
		return decodeDeleted(id, value)
	}
	var r accountRecord
	if err := decodeRecord(value, &r); err != nil {
		return nil, err
	}
	err := r.checkOwner()
	if err == nil {
		err = r.Role.check()
	}
	if err == nil && r.Password != "" {
		err = password.Valid(r.Password)
	}
	if err == nil && r.Factor != nil {
		err = r.Factor.check()
	}
	if err != nil {
		return nil, err
	}
	p := &person{number: number, password: r.Password, epoch: r.Epoch, invitation: r.Invitation, tokens: r.Tokens, team: r.Team}
	p.Account = Account{
		ID: id, Email: r.Email, Role: r.Role, Created: r.Created.time(), Verified: r.Verified.time(), Disabled: r.Disabled.time(),
		Password: r.Password != "", Limits: r.Limits,
	}
	p.setFactor(r.Factor)
	p.setIdentity(r.Identity)
	if r.Reset != nil {
		p.reset, p.Resets, p.resetMailed = &r.Reset.Hash, r.Reset.Until.time(), r.Reset.Mailed
	}
	if p.team != nil {
		p.Team = p.team.Name
	}
	return p, p.check()
}

// checkOwner returns an error unless the account is a user's, with an e-mail address, or a team's.
func (r *accountRecord) checkOwner() error {
	if r.Team != nil {
		if r.Email != "" {
			return errors.New("a team with an e-mail address")
		}
		return r.Team.check()
	}
	email, err := foldEmail(r.Email)
	if err == nil && email != r.Email {
		err = errors.New("the e-mail address is not written in lower case")
	}
	return err
}

// decodeDeleted decodes the last row of a deleted account.
func decodeDeleted(id ID, value []byte) (*person, error) {
	var r deletedRecord
	if err := decodeRecord(value, &r); err != nil {
		return nil, err
	}
	if !r.Deleted {
		return nil, errors.New("the last revision does not delete the account")
	}
	return &person{Account: Account{ID: id, deleted: true}, number: lastRevision, invitation: r.Invitation}, nil
}

// unreadableAccount returns what is known of an account whose newest row has a fault.
func unreadableAccount(id ID, row row, fault error) *person {
	var r accountRecord
	if len(row.value) > 0 {
		_ = json.Unmarshal(row.value[1:], &r) // as far as it goes
	}
	email, err := foldEmail(r.Email)
	if err != nil {
		email = ""
	}
	team := "" // its members are unknown
	if r.Team != nil {
		team = r.Team.Name
	}
	p := &person{number: row.number, epoch: r.Epoch, invitation: r.Invitation}
	p.Account = Account{ID: id, Email: email, Team: team, Role: RoleUser, Created: r.Created.time(), Disabled: r.Disabled.time(), Unreadable: fault.Error()}
	return p
}

// readPeople reads all accounts, and makes those current that have a newer revision than in
// memory.
func (a *Accounts) readPeople(ctx context.Context) error {
	earlier := make(map[ID]bool) // accounts with a revision before the last
	rows, err := newestOf(ctx, a.rows.store, accountRevisions, len(ID{}), func(r kv.Row) {
		if r.Sort != lastRevision {
			earlier[ID(r.Partition)] = true
		}
		a.noteTeamRow(r.Value)
	})
	if err != nil {
		return err
	}
	// Deleted ones first, whose e-mail addresses others may have now.
	deletedFirst := func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[b].number/lastRevision, rows[a].number/lastRevision), cmp.Compare(a, b))
	}
	a.releaseEmails(rows)
	for _, partition := range slices.SortedFunc(maps.Keys(rows), deletedFirst) {
		id, row := ID([]byte(partition)), rows[partition]
		a.apply(id, row)
		if row.number == lastRevision && earlier[id] {
			a.leaves(id)
		}
	}
	return nil
}

// releaseEmails forgets the e-mail addresses that accounts have changed, before any row is applied:
// another account may have such an address now, whose row may come first.
func (a *Accounts) releaseEmails(rows map[string]row) {
	for partition, row := range rows {
		id := ID([]byte(partition))
		h := a.known(id)
		if h == nil || h.load().number >= row.number {
			continue
		}
		before := h.load().Email
		if p, err := decodeAccount(id, row.number, row.value); err != nil || p.Email == before {
			continue
		}
		a.mu.Lock()
		if a.emails[before] == h {
			delete(a.emails, before)
		}
		a.mu.Unlock()
	}
}

// apply makes a row the current revision of its account, unless memory has it or a newer one. A row that could not be
// read is read again: the account that had its e-mail address may have another one by now.
func (a *Accounts) apply(id ID, row row) {
	h := a.known(id)
	if h != nil && (h.load().number > row.number || h.load().number == row.number && h.load().Unreadable == "") {
		return
	}
	p, err := decodeAccount(id, row.number, row.value)
	if err == nil && a.ofOther(p.Email, id) {
		err = errors.New("another account has the e-mail address too")
	}
	if err != nil {
		a.rows.disable(placeOf(id), "account "+id.String(), row.number, err)
		p = unreadableAccount(id, row, err)
		if a.ofOther(p.Email, id) {
			p.Email = ""
		}
	} else {
		a.rows.enable(placeOf(id))
	}
	a.keep(p)
	if p.deleted && h != nil {
		a.leaves(id)
	}
}

// ofOther reports whether an e-mail address is that of another account than id.
func (a *Accounts) ofOther(email string, id ID) bool {
	p := a.withEmail(email)
	return p != nil && p.ID != id
}

// keep makes p the current revision of its account in memory.
func (a *Accounts) keep(p *person) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.people[p.ID]
	if h == nil {
		h = new(holder)
		a.people[p.ID] = h
	}
	before := h.load()
	if before == nil {
		before = new(person)
	}
	if before.Email != p.Email && a.emails[before.Email] == h { // else another account has it now
		delete(a.emails, before.Email)
	}
	if before.identity != nil && a.identities[*before.identity] == h {
		delete(a.identities, *before.identity)
	}
	a.indexMembers(p.ID, before.team, p.team)
	if p.identity != nil {
		a.identities[*p.identity] = h
	}
	h.state.Store(p)
	if p.Email != "" { // a team has none, and that of an unreadable account may be unknown
		a.emails[p.Email] = h
	}
}
