package account

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// teamRecord is the JSON of a team in an accountRecord.
type teamRecord struct {
	Name    string         `json:"name"`
	Members []memberRecord `json:"members,omitempty"`
	Ended   []ID           `json:"ended,omitempty"`  // memberships that this revision has ended
	Joined  *joinedRecord  `json:"joined,omitempty"` // the invitation that this revision has used
}

// memberRecord is the JSON of a membership.
type memberRecord struct {
	ID      ID       `json:"id"` // of the membership: another one whenever an account becomes a member
	Account ID       `json:"account"`
	Role    TeamRole `json:"role"`
	Since   seconds  `json:"since"`
}

// joinedRecord is the JSON of an invitation that was used to join a team.
type joinedRecord struct {
	Invitation hash `json:"invitation"`
	By         ID   `json:"by"`
}

// check returns an error unless t could have been written.
func (t *teamRecord) check() error {
	if err := checkTeamName(t.Name); err != nil {
		return err
	}
	if len(t.Members) > maxMembers {
		return fmt.Errorf("a team with %d members (want at most %d)", len(t.Members), maxMembers)
	}
	for i, m := range t.Members {
		if err := m.Role.check(); err != nil {
			return err
		}
		if m.ID.IsZero() || m.Account.IsZero() {
			return errors.New("a member without an ID")
		}
		if slices.ContainsFunc(t.Members[:i], func(other memberRecord) bool { return other.Account == m.Account }) {
			return fmt.Errorf("the account %s is a member twice", m.Account)
		}
	}
	return nil
}

// find returns the index of an account among the members, -1 if it is not a member.
func (t *teamRecord) find(member ID) int {
	return slices.IndexFunc(t.Members, func(m memberRecord) bool { return m.Account == member })
}

// end removes a member.
func (t *teamRecord) end(i int) {
	t.Ended = append(t.Ended, t.Members[i].ID)
	t.Members = slices.Delete(t.Members, i, i+1)
}

// noteTeamRow records the ended memberships and the used invitation that any revision of a team
// names.
func (a *Accounts) noteTeamRow(value []byte) {
	if !bytes.Contains(value, []byte(`"team":`)) { // do not decode other rows
		return
	}
	var record struct{ Team *teamRecord }
	_ = json.Unmarshal(value[1:], &record) // an unreadable row is treated as such elsewhere
	if record.Team == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteTeam(record.Team)
}

// noteTeam is noteTeamRow for a decoded row. a.mu is held.
func (a *Accounts) noteTeam(t *teamRecord) {
	for _, id := range t.Ended {
		a.ended[id] = struct{}{}
	}
	if t.Joined != nil {
		a.joined[t.Joined.Invitation] = t.Joined.By
	}
}

// indexMembers updates the teams by their members after a change of one. Both may be nil. a.mu
// is held.
func (a *Accounts) indexMembers(team ID, before, after *teamRecord) {
	if before != nil {
		for _, m := range before.Members {
			delete(a.teamsOf[m.Account], team)
		}
	}
	if after == nil {
		return
	}
	for _, m := range after.Members {
		if a.teamsOf[m.Account] == nil {
			a.teamsOf[m.Account] = make(map[ID]struct{})
		}
		a.teamsOf[m.Account][team] = struct{}{}
	}
	a.noteTeam(after)
}

// current returns the members of a team: those whose membership no revision has ended, and whose
// accounts are not deleted.
func (a *Accounts) current(t *teamRecord) []memberRecord {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(t.Members), func(m memberRecord) bool {
		_, ended := a.ended[m.ID]
		h := a.people[m.Account]
		return ended || h == nil || h.load().deleted
	})
}
