package dashboard

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ashlar/account"
)

var joinLink = regexp.MustCompile(`<pre id="invitation-link">http://[^/]+(/teams/join\?invitation=[0-9a-f]+)</pre>`)

// invite has an owner invite somebody, and returns the path of the link.
func (b *browser) invite(team, email, role string) string {
	b.s.t.Helper()
	p := b.post(team+"/invitations", url.Values{"email": {email}, "role": {role}, "expires": {"7"}})
	found := joinLink.FindStringSubmatch(p.body)
	if found == nil {
		b.s.t.Fatalf("no link in %s", p.text())
	}
	if strings.Contains(b.get(team+"/members").body, found[1]) {
		b.s.t.Error("the link is shown again")
	}
	return found[1]
}

// A user creates a team, invites one with an account and one without, and they share keys.
func TestTeams(t *testing.T) {
	s := serve(t, account.RegistrationInvited)
	g := &group{T: t, service: s, member: s.browser()}
	g.owner, _ = s.newUser("owner@example.org", account.RoleUser)
	g.guest, g.who = s.newUser("guest@example.org", account.RoleUser)
	g.create()
	g.join()
	g.withdraw()
	g.shareKeys()
	g.changeRoles()
	g.operate()
	g.remove()
}

// group are the users of a team.
type group struct {
	*testing.T
	*service
	owner, guest, member *browser
	who                  account.Account // of the guest
	team, id             string          // path and ID of the team
}

// create creates the team, of which the guest sees nothing yet.
func (g *group) create() {
	owner, guest := g.owner, g.guest
	owner.get("/teams").says(g.T, 200, "You are not a member of a team")
	owner.post("/teams", url.Values{"name": {""}}).says(g.T, 422, `id="name-error"`)
	made := owner.post("/teams", url.Values{"name": {"Stone & Sons"}})
	g.team = strings.TrimSuffix(made.header.Get("Location"), "/members")
	g.id = strings.TrimPrefix(g.team, "/teams/")
	made.leads(g.T, g.team+"/members")
	owner.get(g.team+"/members").says(g.T, 200, "Stone &amp; Sons", "owner@example.org", "Leave the team")
	owner.get(g.team).says(g.T, 200, "All keys of the team Stone &amp; Sons together")
	guest.get(g.team).says(g.T, 404)
}

// join invites the guest, who joins once.
func (g *group) join() {
	s, owner, guest, team := g.service, g.owner, g.guest, g.team
	link := owner.invite(team, "guest@example.org", "viewer")
	owner.get(team+"/members").says(g.T, 200, "Open invitations", "guest@example.org")
	s.browser().get(link).says(g.T, 200, "Stone &amp; Sons", "Sign in to join", "/signup?invitation=")
	guest.get(link).says(g.T, 200, "as a viewer", "Join the team")
	token := strings.TrimPrefix(link, "/teams/join?invitation=")
	guest.post("/teams/join", url.Values{"invitation": {token}}).leads(g.T, team)
	guest.get(link).says(g.T, 422, "This invitation is not valid")
	s.browser().get("/signup?invitation="+token).says(g.T, 200, "not valid")
	guest.get("/keys").says(g.T, 200, `href="`+team+`/keys">Stone &amp; Sons`) // the switch stays on the page
}

// withdraw withdraws an invitation.
func (g *group) withdraw() {
	owner, guest, team := g.owner, g.guest, g.team
	link := owner.invite(team, "late@example.org", "viewer")
	withdraw := regexp.MustCompile(`href="(` + team + `/invitations/[^"]+/withdraw)"`).FindStringSubmatch(owner.get(team + "/members").body)[1]
	owner.get(withdraw).says(g.T, 200, "Withdraw this invitation?", "late@example.org", "viewer of Stone &amp; Sons", `action="`+withdraw+`"`)
	guest.get(link).says(g.T, 422, "for another e-mail address") // it is open still
	owner.post(withdraw, nil).leads(g.T, team+"/members")
	owner.get(withdraw).leads(g.T, team+"/members") // it has ended
}

// shareKeys has a new user join and make a key, which the guest sees as a viewer.
func (g *group) shareKeys() {
	owner, guest, member, team := g.owner, g.guest, g.member, g.team
	link := owner.invite(team, "", "member")
	member.get(strings.Replace(link, "/teams/join", "/signup", 1)).says(g.T, 200, "You were invited")
	member.post("/signup", url.Values{"email": {"new@example.org"}, "password": {goodPassword}, "invitation": {strings.TrimPrefix(link, "/teams/join?invitation=")}}).leads(g.T, "/")
	issued := member.post(team+"/keys/new", url.Values{"name": {"of the team"}})
	issued.says(g.T, 200, "Your new key")
	keys := guest.get(team + "/keys")
	keys.says(g.T, 200, "of the team")
	if strings.Contains(keys.body, "Create a key") || strings.Contains(keys.body, "/console") {
		g.Errorf("a viewer is offered what the role does not allow: %s", keys.text())
	}
	owner.get("/keys").says(g.T, 200, "You have no key yet")
	guest.get(team+"/keys/new").says(g.T, 403, "You are a viewer of the team Stone &amp; Sons. This needs the role member")
}

// changeRoles makes the guest a member, and then removes it. The only owner can neither leave nor be deleted.
func (g *group) changeRoles() {
	owner, guest, who, team := g.owner, g.guest, g.who, g.team
	members := team + "/members/"
	owner.post(members+who.ID.String(), url.Values{"do": {"role"}, "role": {"member"}}).leads(g.T, team+"/members")
	guest.get(team+"/keys/new").says(g.T, 200)
	owner.get(team+"/members").says(g.T, 200, `href="`+team+`/leave"`)
	owner.get(team+"/leave").says(g.T, 200, "Leave Stone &amp; Sons?", "You are an owner", "An owner can invite you again")
	owner.post(team+"/leave", nil).says(g.T, 422, "The account is the only owner of the team")
	owner.post(members+who.ID.String(), url.Values{"do": {"role"}, "role": {"king"}}).says(g.T, 422, "Unknown role")
	remove := members + who.ID.String() + "/remove"
	owner.get(team+"/members").says(g.T, 200, `href="`+remove+`"`)
	owner.get(remove).says(g.T, 200, "Remove "+who.Email+"?", "Stone &amp; Sons", "loses access at once")
	guest.get(team+"/keys").says(g.T, 200)
	owner.post(remove, nil).leads(g.T, team+"/members")
	owner.get(remove).leads(g.T, team+"/members") // it is removed
	guest.get(team+"/keys").says(g.T, 404)
	owner.post(team+"/name", url.Values{"team-name": {"Granite"}}).leads(g.T, team+"/members")
	form := url.Values{"name": {"owner@example.org"}, "password": {goodPassword}}
	owner.post("/account/delete", form).says(g.T, 422, "only owner of the team &#34;Granite&#34;")
}

// operate manages the team as an operator.
func (g *group) operate() {
	s, member, who, team, id := g.service, g.member, g.who, g.team, g.id
	boss, _ := s.newUser("boss@example.org", account.RoleOperator)
	boss.get("/people?q=granite+team").says(g.T, 200, "Granite", "1 to 1 of 1")
	boss.get("/people/"+id).says(g.T, 200, "Granite", "new@example.org", "Manage members", "of the team")
	managing := boss.get(team + "/members")
	managing.says(g.T, 200, "Invite a member", `href="/keys"`)
	if strings.Contains(managing.body, team+"/keys") || strings.Contains(managing.body, "Leave the team") {
		g.Errorf("an operator who is not a member is offered a member's pages: %s", managing.text())
	}
	boss.post("/people/"+id, url.Values{"do": {"reset"}}).says(g.T, 422, "nobody signs in to it")
	boss.post("/people/"+id, url.Values{"do": {"save"}, "keys": {"1"}}).leads(g.T, "/people/"+id)
	member.post(team+"/keys/new", url.Values{"name": {"second"}}).says(g.T, 422, "may have at once (1)")
	boss.get("/audit?account="+id).says(g.T, 200, "Granite", "Remove "+who.ID.String()+" from team "+id)
	boss.post("/people/"+id, url.Values{"do": {"disable"}}).leads(g.T, "/people/"+id)
	member.get(team+"/keys").says(g.T, 403, "disabled")
	boss.post("/people/"+id, url.Values{"do": {"enable"}}).leads(g.T, "/people/"+id)
}

// remove deletes the team, after which its owner can be deleted.
func (g *group) remove() {
	owner, member, team := g.owner, g.member, g.team
	form := url.Values{"name": {"owner@example.org"}, "password": {goodPassword}}
	member.get(team+"/delete").says(g.T, 403)
	owner.get(team+"/delete").says(g.T, 200, "1 key stops working at once", "Type Granite to confirm")
	owner.post(team+"/delete", url.Values{"name": {"Granite"}, "password": {"wrong wrong"}}).says(g.T, 422, "password-error")
	owner.post(team+"/delete", url.Values{"name": {"Granite"}, "password": {goodPassword}}).leads(g.T, "/teams")
	member.get(team).says(g.T, 404)
	owner.post("/account/delete", form).says(g.T, 200, "Your account was deleted")
}

// No link on a page about a team leads to a page of the visitor's own account by mistake.
func TestLinksStayInTeam(t *testing.T) {
	s := newScene(t)
	team := "/teams/" + s.values["{team}"]
	own := regexp.MustCompile(`(?:href|action|data-live|data-settled-at)="(/(?:keys|usage|console|live|usage\.csv)[/"?#][^"]*)`)
	for pattern := range accountPages() {
		if !strings.HasPrefix(pattern, "GET ") {
			continue
		}
		p := s.request(teamOwner, strings.Replace(pattern, " ", " /teams/{team}", 1))
		p.says(t, 200)
		for _, link := range own.FindAllStringSubmatch(p.body, -1) {
			if !strings.Contains(p.body, `<li><a href="`+link[1]) { // the switch to the own account
				t.Errorf("%s of a team leads to %s", pattern, link[1])
			}
		}
		if strings.Contains(p.body, "<html") && !strings.Contains(p.body, `href="`+team+`/keys"`) {
			t.Errorf("%s of a team does not lead to its keys", pattern)
		}
	}
}

// A token acts in a team with the role that its user has at the time.
func TestTeamsByAPI(t *testing.T) {
	s := newScene(t)
	team := "/api/v1/teams/" + s.values["{team}"]
	b := s.browser()
	member, viewer := s.tokens[teamMember], s.tokens[teamViewer]
	b.ask("GET", "/api/v1/teams", viewer, "").says(t, 200, `"name":"stone","role":"viewer"`)
	b.ask("GET", "/api/v1/teams", s.tokens[notMember], "").says(t, 200, "[]")
	made := b.ask("POST", team+"/keys", member, `{"name":"by script"}`)
	made.says(t, 201, `"owner":"`+s.values["{team}"]+`"`)
	b.ask("GET", team+"/keys", viewer, "").says(t, 200, "by script")
	b.ask("POST", team+"/keys", viewer, `{"name":"x"}`).says(t, 403, `the role viewer in the team \"stone\" does not allow this (want member)`)
	owner, path := s.tokens[teamOwner], team+"/members/"+s.accounts[teamMember].ID.String()
	b.ask("PATCH", path, owner, `{"role":"viewer"}`).says(t, 200, `"role":"viewer"`)
	b.ask("POST", team+"/keys", member, `{"name":"x"}`).says(t, 403)
	b.ask("PATCH", path, owner, `{"role":"king"}`).says(t, 422, `"field":"role"`)
	b.ask("DELETE", path, owner, "").says(t, 200)
	b.ask("GET", team+"/keys", member, "").says(t, 404, "no such team")
	b.ask("DELETE", path, owner, "").says(t, 404, "no such member")
	b.ask("DELETE", team+"/members/"+s.values["{member}"], owner, "").says(t, 200)
	b.ask("DELETE", team+"/members/"+s.accounts[teamOwner].ID.String(), owner, "").says(t, 403, "the only owner")
	b.ask("POST", team+"/invitations", owner, `{"role":"member","validSeconds":9223372036854775807}`).says(t, 422, `"field":"expires"`)
	invited := b.ask("POST", team+"/invitations", owner, `{"role":"member","email":"0@example.org"}`)
	invited.says(t, 201, "/teams/join?invitation=", `"email":"0@example.org"`)
	b.ask("GET", team+"/invitations", owner, "").says(t, 200, `"email":"0@example.org"`)
}
