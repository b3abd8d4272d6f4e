package site

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ashlar/account"
)

// teamPath is the path below which pages are about a team.
const teamPath = "/teams/"

// Chosen is the account that a request is about: the visitor's own, or that of a team. The
// choice is in the path, so that links keep it, and two tabs can differ.
type Chosen struct {
	Account *account.Account
	Role    account.TeamRole // of the visitor; owner of the own account, empty for operators who are not members
}

// Needs is what a page or an operation about an account requires of the visitor.
type Needs struct {
	Role      account.TeamRole // in a team; everybody may do everything with the own account
	Operators bool             // operators need no role
}

// RoleError means that the role of a member does not allow what was asked for.
type RoleError struct {
	Team     string
	Is, Need account.TeamRole
}

func (e *RoleError) Error() string {
	return fmt.Sprintf("the role %s in the team %q does not allow this (want %s)", e.Is, e.Team, e.Need)
}

// Choose returns the account that a request of a user is about, whose path may have the ID of a
// team. Every page and every operation of the API that is about an account calls it, so it alone
// decides what roles allow. Users who are not members do not learn whether a team exists.
func Choose(accounts *account.Accounts, who *account.Account, r *http.Request, n Needs) (Chosen, error) {
	text := r.PathValue("team")
	if text == "" {
		return Chosen{who, account.TeamOwner}, nil
	}
	var id account.ID
	if id.UnmarshalText([]byte(text)) != nil {
		return Chosen{}, account.ErrNoTeam
	}
	team, role, err := accounts.InTeam(id, who.ID)
	operator := n.Operators && who.Role == account.RoleOperator
	if operator {
		team, err = accounts.FindTeam(id.String())
	}
	switch {
	case errors.Is(err, account.ErrUnreadable): // so its members are unknown
		return Chosen{}, account.ErrNoTeam
	case err != nil:
		return Chosen{}, err
	case !role.Includes(n.Role) && !operator:
		return Chosen{}, &RoleError{team.Team, role, n.Role}
	case !team.Enabled() && !operator:
		return Chosen{}, account.ErrDisabled
	}
	return Chosen{&team, role}, nil
}

// Path returns the path of a page about the chosen account. Pages of the visitor's own account
// have the same paths without the team.
func (c Chosen) Path(page string) string {
	if c.Account == nil || !c.Account.IsTeam() {
		return page
	}
	return strings.TrimSuffix(teamPath+c.Account.ID.String()+page, "/")
}

// Base returns what precedes the paths of pages about the chosen account.
func (c Chosen) Base() string { return strings.TrimSuffix(c.Path("/"), "/") }

// MayEdit reports whether the visitor may create, change and revoke keys of the account.
func (c Chosen) MayEdit() bool { return c.Role.Includes(account.TeamMember) }

// ForAccount returns a page about the visitor's own account, or with /teams/{team} before its
// path about a team in which the visitor has at least a role.
func ForAccount(pattern string, least account.TeamRole, serve func(*Visit) error) Page {
	return Page{patterns: []string{pattern, ofTeam(pattern)}, access: people, needs: Needs{Role: least}, serve: serve}
}

// ForTeam returns a page about a team in which the visitor has at least a role. Its path is below
// /teams/{team}.
func ForTeam(pattern string, least account.TeamRole, serve func(*Visit) error) Page {
	return Page{patterns: []string{ofTeam(pattern)}, access: people, needs: Needs{Role: least}, serve: serve}
}

// ForManagers is ForTeam, and operators may see the page too.
func ForManagers(pattern string, least account.TeamRole, serve func(*Visit) error) Page {
	p := ForTeam(pattern, least, serve)
	p.needs.Operators = true
	return p
}

// ofTeam returns the pattern of a page about a team.
func ofTeam(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return method + " " + strings.TrimSuffix("/teams/{team}"+path, "/")
}

// switchLine is an account that the visitor can choose.
type switchLine struct {
	Path, Name string
	Role       account.TeamRole // empty for the own account
	Here       bool
}

// choices returns the accounts that the visitor can choose, nil if there is only one. Each leads to
// the page that is shown, if every account has it.
func (v *Visit) choices() (all []switchLine) {
	teams := v.Config.Accounts.Teams(v.Who.ID)
	if len(teams) == 0 {
		return nil
	}
	page := "/"
	for _, one := range []string{"/keys", "/usage"} {
		if v.R.URL.Path == v.Path(one) {
			page = one
		}
	}
	all = append(all, switchLine{Path: page, Name: v.Who.Email, Here: v.Account == v.Who})
	for _, m := range teams {
		if m.Team.Enabled() {
			of := Chosen{&m.Team, m.Role}
			all = append(all, switchLine{of.Path(page), m.Team.Team, m.Role, v.Account.ID == m.Team.ID})
		}
	}
	return all
}

// roleFailure describes errors about teams for people.
func roleFailure(err error) (failure, bool) {
	var role *RoleError
	switch {
	case errors.As(err, &role):
		return failure{http.StatusForbidden, "Your role does not allow this", fmt.Sprintf("You are %s of the team %s. This needs the role %s: ask an owner of the team.", WithArticle(role.Is), role.Team, role.Need)}, true
	case errors.Is(err, account.ErrDisabled):
		return failure{http.StatusForbidden, "Disabled", Sentence(account.ErrDisabled.Error())}, true
	}
	return failure{}, false
}

// WithArticle writes a role as in "you are an owner".
func WithArticle(r account.TeamRole) string {
	if r == account.TeamOwner {
		return "an owner"
	}
	return "a " + string(r)
}
