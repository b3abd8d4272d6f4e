package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/api"
	"ashlar/dashboard/site"
)

// The visitors of TestRoles.
const (
	signedOut  = "signed out"
	notMember  = "not a member"
	teamViewer = "viewer"
	teamMember = "member"
	teamOwner  = "owner"
	anOperator = "operator" // who is not a member
)

func visitors() []string {
	return []string{signedOut, notMember, teamViewer, teamMember, teamOwner, anOperator}
}

// admitted lists who may request what a pattern leads to.
type admitted []string

var (
	forAll       = admitted(visitors())
	forUsers     = forAll[1:]
	forOperators = admitted{anOperator}
	forViewers   = admitted{teamViewer, teamMember, teamOwner}
	forMembers   = admitted{teamMember, teamOwner}
	forWatchers  = admitted{teamViewer, teamMember, teamOwner, anOperator}
	forManagers  = admitted{teamOwner, anOperator}
)

// accountPages are the pages about an account, by who may see those of a team.
func accountPages() map[string]admitted {
	return map[string]admitted{
		"GET /keys": forViewers, "GET /keys/{key}": forViewers, "GET /keys/{key}/failures": forViewers,
		"GET /usage": forViewers, "GET /usage.csv": forViewers, "GET /live": forViewers, "GET /networks": forViewers,
		"GET /keys/new": forMembers, "POST /keys/new": forMembers, "POST /keys/{key}": forMembers,
		"GET /keys/{key}/rotate": forMembers, "POST /keys/{key}/rotate": forMembers,
		"GET /keys/{key}/revoke": forMembers, "POST /keys/{key}/revoke": forMembers, "POST /keys/{key}/failures": forMembers,
		"GET /console": forMembers, "POST /console": forMembers, "GET /console/live": forMembers,
	}
}

// decisions says for every route who is admitted. A new route needs a line here.
func decisions() map[string]admitted {
	all := map[string]admitted{
		"GET /teams/{team}":                                    forViewers,
		"GET /teams/{team}/members":                            forWatchers,
		"GET /teams/{team}/leave":                              forViewers,
		"POST /teams/{team}/leave":                             forViewers,
		"POST /teams/{team}/members/{member}":                  forManagers,
		"GET /teams/{team}/members/{member}/remove":            forManagers,
		"POST /teams/{team}/members/{member}/remove":           forManagers,
		"POST /teams/{team}/invitations":                       forManagers,
		"GET /teams/{team}/invitations/{invitation}/withdraw":  forManagers,
		"POST /teams/{team}/invitations/{invitation}/withdraw": forManagers,
		"POST /teams/{team}/name":                              forManagers,
		"GET /teams/{team}/delete":                             forManagers,
		"POST /teams/{team}/delete":                            forManagers,
		"GET /api/v1/teams":                                    forUsers,
		"GET /api/v1/teams/{team}/members":                     forWatchers,
		"PATCH /api/v1/teams/{team}/members/{member}":          forManagers,
		"DELETE /api/v1/teams/{team}/members/{member}":         forManagers,
		"GET /api/v1/teams/{team}/invitations":                 forManagers,
		"POST /api/v1/teams/{team}/invitations":                forManagers,
		"DELETE /api/v1/teams/{team}/invitations/{invitation}": forManagers,
		"GET /api/openapi.json":                                forAll,
	}
	for pattern, who := range accountPages() {
		method, path, _ := strings.Cut(pattern, " ")
		all[pattern], all[method+" /teams/{team}"+path] = forUsers, who
	}
	for pattern, who := range map[string]admitted{
		"GET /keys": forViewers, "GET /keys/{key}": forViewers, "POST /keys": forMembers, "PATCH /keys/{key}": forMembers,
		"DELETE /keys/{key}": forMembers, "POST /keys/{key}/rotate": forMembers,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		all[method+" /api/v1"+path], all[method+" /api/v1/teams/{team}"+path] = forUsers, who
	}
	for who, patterns := range map[*admitted]string{
		&forAll: `GET /{$}, GET /status, GET /signin, POST /signin, GET /signin/code, POST /signin/code, POST /signin/passkey, POST /signin/passkey/answer,
			GET /signin/provider, GET /signin/provider/back, POST /signout, GET /signup, POST /signup, GET /signup/confirm, POST /signup/confirm,
			GET /forgot, POST /forgot, GET /account/confirm, POST /account/confirm, GET /setup, POST /setup, GET /reset, POST /reset,
			GET /docs, GET /docs/methods/{method}, GET /docs/requests, GET /docs/errors, GET /docs/limits, GET /teams/join`,
		&forUsers: `GET /account, POST /account/password, POST /account/email, POST /account/provider, POST /account/provider/remove, GET /account/factor,
			POST /account/factor, POST /account/factor/recovery, POST /account/factor/remove, GET /account/passkeys, POST /account/passkeys,
			POST /account/passkeys/made, POST /account/passkeys/remove, GET /account/tokens, POST /account/tokens, GET /account/tokens/{token}/revoke,
			POST /account/tokens/{token}/revoke,
			POST /account/sessions, GET /account/delete, POST /account/delete, GET /teams, POST /teams, POST /teams/join`,
		&forOperators: `GET /people, GET /people/{person}, POST /people/{person}, GET /people/{person}/delete, POST /people/{person}/delete, GET /audit,
			GET /invitations, POST /invitations, GET /invitations/{invitation}/withdraw, POST /invitations/{invitation}/withdraw, GET /limits, GET /service`,
	} {
		for pattern := range strings.SplitSeq(patterns, ",") {
			all[strings.TrimSpace(pattern)] = *who
		}
	}
	return all
}

// routesServed lists the patterns of all pages and of the API.
func routesServed() []string {
	all := slices.Collect(maps.Keys(api.Handlers(&site.Config{})))
	for _, p := range pages() {
		all = append(all, p.Patterns()...)
	}
	slices.Sort(all)
	return all
}

// scene is a service with a team and with visitors.
type scene struct {
	*service
	browsers map[string]*browser
	tokens   map[string]string // for the API
	accounts map[string]account.Account
	keys     map[string]string // IDs, of each visitor
	values   map[string]string // of patterns
}

func newScene(t *testing.T) *scene {
	s := &scene{service: serve(t, account.RegistrationOpen), browsers: make(map[string]*browser), tokens: make(map[string]string), accounts: make(map[string]account.Account), keys: make(map[string]string)}
	ctx := t.Context()
	need := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.public = true
	s.browsers[signedOut] = s.browser()
	for i, who := range visitors()[1:] {
		role := account.RoleUser
		if who == anOperator {
			role = account.RoleOperator
		}
		b, a := s.newUser(fmt.Sprintf("%d@example.org", i), role)
		issued, err := s.service.keys.Of(a.ID).Create(ctx, account.NewKey{Name: "own"})
		need(err)
		token, _, err := s.service.accounts.CreateToken(ctx, a.ID, "script", time.Hour)
		need(err)
		s.browsers[who], s.accounts[who], s.tokens[who], s.keys[who] = b, a, token, issued.Key.ID.String()
	}
	team, err := s.service.accounts.CreateTeam(ctx, "stone", s.accounts[teamOwner].ID)
	need(err)
	_, spare, err := s.service.accounts.Create(ctx, account.NewAccount{Email: "spare@example.org"})
	need(err)
	for who, role := range map[account.ID]account.TeamRole{
		s.accounts[teamMember].ID: account.TeamMember, s.accounts[teamViewer].ID: account.TeamViewer, spare.ID: account.TeamOwner,
	} {
		_, err = s.service.accounts.AddMember(ctx, team.ID, who.String(), role)
		need(err)
	}
	issued, err := s.service.keys.Of(team.ID).Create(ctx, account.NewKey{Name: "of the team"})
	need(err)
	_, invitation, err := s.service.accounts.Invite(ctx, account.NewInvitation{Team: team.ID, TeamRole: account.TeamViewer})
	need(err)
	s.values = map[string]string{
		"{team}": team.ID.String(), "{member}": spare.ID.String(), "{person}": spare.ID.String(), "{invitation}": invitation.ID,
		"{method}": "eth_blockNumber", "{token}": "0102030405060708", "{$}": "", "{key}": issued.Key.ID.String(),
	}
	return s
}

// state describes everything that requests could change.
func (s *scene) state() string {
	s.t.Helper()
	people, _ := s.service.accounts.List(s.t.Context())
	keys, _ := s.service.keys.List(s.t.Context())
	invitations, _ := s.service.accounts.Invitations(s.t.Context())
	var members []account.Member
	var team account.ID
	if team.UnmarshalText([]byte(s.values["{team}"])) == nil {
		members, _ = s.service.accounts.Members(s.t.Context(), team)
	}
	text, err := json.Marshal([]any{people, keys, invitations, members})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// request sends a request of a visitor.
func (s *scene) request(who, pattern string) page {
	s.t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	for name, value := range s.values {
		if name == "{key}" && !strings.Contains(pattern, "{team}") && who != signedOut && s.keys[who] != "" {
			value = s.keys[who]
		}
		path = strings.ReplaceAll(path, name, value)
	}
	if strings.Contains(path, "{") {
		s.t.Fatalf("%s has a value that the test does not know", pattern)
	}
	b := s.browsers[who]
	switch {
	case strings.HasPrefix(path, "/api/"):
		body := ""
		if method == http.MethodPatch || strings.HasSuffix(path, "/invitations") && method == http.MethodPost {
			body = `{"role":"viewer"}`
			if strings.Contains(path, "/keys/") {
				body = `{"name":"other"}`
			}
		}
		return b.ask(method, path, s.tokens[who], body)
	case method == http.MethodPost:
		return b.post(path, url.Values{"role": {"viewer"}, "name": {"x"}, "team-name": {"x"}, "expires": {"7"}, "overlap": {"0"}, "params": {"keep"}})
	}
	return b.get(path)
}

// refusal returns why an answer is a refusal, empty if it is none.
func refusal(p page) string {
	switch {
	case p.status == http.StatusTooManyRequests && strings.HasPrefix(p.body, "{"): // requests to the API without a token are limited
		return "sign in"
	case p.status == http.StatusSeeOther && strings.HasPrefix(p.header.Get("Location"), "/signin") && !strings.HasPrefix(p.header.Get("Location"), "/signin/"), p.status == http.StatusUnauthorized:
		return "sign in"
	case p.status == http.StatusForbidden:
		return "forbidden"
	case p.status == http.StatusNotFound:
		return "not found"
	}
	return ""
}

// expectedRefusal returns the refusal that a visitor gets who is not admitted.
func expectedRefusal(who, pattern string) string {
	switch {
	case who == signedOut:
		return "sign in"
	case strings.Contains(pattern, "{team}") && (who == notMember || who == anOperator):
		return "not found" // whether the team exists is not told
	}
	return "forbidden"
}

// Every page and every operation of the API admits those who are listed for it, and nobody else.
// What is refused changes nothing.
func TestRoles(t *testing.T) {
	decided := decisions()
	served := routesServed()
	for _, pattern := range served {
		if decided[pattern] == nil {
			t.Errorf("%s: nobody has decided who is admitted", pattern)
		}
	}
	for pattern := range decided {
		if !slices.Contains(served, pattern) {
			t.Errorf("%s is decided, but not served", pattern)
		}
	}
	if t.Failed() {
		return
	}
	shared := newScene(t)
	before := shared.state()
	for _, pattern := range served {
		for _, who := range visitors() {
			if slices.Contains(decided[pattern], who) {
				continue
			}
			if p := shared.request(who, pattern); refusal(p) != expectedRefusal(who, pattern) {
				t.Errorf("%s, %s: %d to %q, expected %q\n%s", pattern, who, p.status, p.header.Get("Location"), expectedRefusal(who, pattern), p.text())
			}
			if after := shared.state(); after != before {
				t.Fatalf("%s, %s: a refused request has changed\n%s\nto\n%s", pattern, who, before, after)
			}
		}
	}
	for _, pattern := range served {
		s := shared
		each := strings.Contains(pattern, "{member}") || strings.Contains(pattern, "{invitation}") || strings.HasSuffix(pattern, "/leave")
		once := strings.Contains(pattern, "{key}") || strings.Contains(pattern, "{person}") || strings.HasSuffix(pattern, "/signout")
		for i, who := range decided[pattern] {
			// What is used up by a request is made anew.
			if !strings.HasPrefix(pattern, "GET ") && (each || once && i == 0) {
				s = newScene(t)
			}
			p := s.request(who, pattern)
			if p.status == http.StatusInternalServerError || refusal(p) != "" && !absent(pattern, who) {
				t.Errorf("%s, %s: %d to %q, but is admitted\n%s", pattern, who, p.status, p.header.Get("Location"), p.text())
			}
		}
	}
}

// absent reports whether a page is admitted, but not there in the scene or leads to signing in.
func absent(pattern, who string) bool {
	return strings.Contains(pattern, "/provider") || // none is configured
		strings.HasPrefix(pattern, "GET /signin/code") || strings.HasPrefix(pattern, "POST /signin/code") || // no sign-in is under way
		pattern == "POST /account/email" || strings.Contains(pattern, "/forgot") || strings.Contains(pattern, "/confirm") || // no e-mails are sent
		pattern == "GET /setup" || pattern == "POST /setup" // there is an operator
}
