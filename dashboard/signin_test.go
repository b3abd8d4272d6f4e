package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
)

func TestSignUpInAndOut(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b := s.browser()
	b.get("/").says(t, 200, `href="/signup"`)
	typed := url.Values{"email": {"New@Example.org"}, "password": {goodPassword}}
	b.post("/signup", typed).leads(t, "/")
	b.get("/").says(t, 200, "Welcome. Your account is ready.", "new@example.org")
	if p := b.get("/"); strings.Contains(p.body, "Welcome") {
		t.Error("what has been done is said twice")
	}
	b.get("/signup").leads(t, "/")
	b.post("/signout", nil).leads(t, "/")
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	b.post("/signin", url.Values{"email": {"new@example.org"}, "password": {goodPassword}, "next": {"/keys?x=1"}}).leads(t, "/keys?x=1")
	b.get("/signin?next=/usage").leads(t, "/usage")
}

// A rejected form comes back with its problems beside the fields and the typed values,
// except passwords.
func TestFormsComeBack(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	s.newUser("taken@example.org", account.RoleUser)
	for _, c := range []struct {
		name, path string
		typed      url.Values
		want       []string
	}{
		{"nothing", "/signup", nil, []string{`id="email-error">This field is required.`, `id="password-error">This field is required.`, `aria-invalid="true"`}},
		{"no address", "/signup", url.Values{"email": {"nonsense<"}, "password": {goodPassword}}, []string{`value="nonsense&lt;"`, `id="email-error"`, "Invalid e-mail address"}},
		{"a short password", "/signup", url.Values{"email": {"a@example.org"}, "password": {"tiny one"}}, []string{`value="a@example.org"`, `id="password-error">The password is too short`}},
		{"taken", "/signup", url.Values{"email": {"taken@example.org"}, "password": {goodPassword}}, []string{`id="email-error">There is an account`}},
		{"a wrong password", "/signin", url.Values{"email": {"taken@example.org"}, "password": {"wrong wrong"}, "next": {"/usage"}}, []string{`value="taken@example.org"`, "The e-mail address or the password is wrong.", `name="next" value="/usage"`}},
		{"nobody", "/signin", url.Values{"email": {"nobody@example.org"}, "password": {"wrong wrong"}}, []string{"The e-mail address or the password is wrong."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := s.browser().post(c.path, c.typed)
			p.says(t, 422, c.want...)
			if typed := c.typed.Get("password"); typed != "" && strings.Contains(p.body, typed) {
				t.Errorf("the password is in the page")
			}
		})
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	s.newUser("victim@example.org", account.RoleUser)
	b := s.browser()
	for range 50 {
		p := b.post("/signin", url.Values{"email": {"victim@example.org"}, "password": {"guess guess"}})
		if p.status == 429 {
			p.says(t, 429, "Too many attempts: try again", "</html>")
			if p.header.Get("Retry-After") == "" {
				t.Error("nothing says when to come back")
			}
			return
		}
	}
	t.Error("50 guesses were let through")
}

// Over TLS the cookie is sent over TLS only, and no page of another path or of a subdomain
// can set it.
func TestCookieOverTLS(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	s.newUser("a@example.org", account.RoleUser)
	form := url.Values{"email": {"a@example.org"}, "password": {goodPassword}}
	request := httptest.NewRequest(http.MethodPost, "https://dash.example.org/signin", strings.NewReader(form.Encode()))
	request.TLS = nil // as behind a proxy: the gateway writes the scheme into the URL
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	cookie := recorder.Header().Get("Set-Cookie")
	for _, want := range []string{"__Host-ashlar=", "; Secure", "; Path=/", "; HttpOnly", "; SameSite=Lax"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("%q is not in %q", want, cookie)
		}
	}
}

func TestNoOpenRedirects(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	s.newUser("a@example.org", account.RoleUser)
	s.browser().post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}, "next": {"//evil.test"}}).leads(t, "/")
}

// Signing in changes the session's token, and scripts and other sites cannot read its
// cookie.
func TestSessions(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	p := b.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}})
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("%q is not in %q", want, cookie)
		}
	}
	token := regexp.MustCompile(`ashlar=([^;]+)`)
	again := b.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}}).header.Get("Set-Cookie")
	if token.FindString(cookie) == token.FindString(again) {
		t.Error("signing in keeps the token of the session")
	}
	other := s.browser()
	other.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}})
	b.post("/account/sessions", nil).leads(t, "/account")
	b.get("/account").says(t, 200, "All other sessions have ended.")
	other.get("/account").leads(t, "/signin?next=%2Faccount")
	if _, err := s.accounts.Disable(t.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	b.get("/account").leads(t, "/signin?next=%2Faccount")
	s.browser().post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}}).says(t, 422, "This account is disabled")
}

func TestPasswords(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	const changed = "another horse battery"
	b.post("/account/password", url.Values{"present": {"wrong wrong"}, "password": {changed}}).says(t, 422, `id="present-error"`)
	b.post("/account/password", url.Values{"present": {goodPassword}, "password": {"short"}}).says(t, 422, `id="password-error"`)
	b.post("/account/password", url.Values{"present": {goodPassword}, "password": {changed}}).leads(t, "/account")
	b.get("/account").says(t, 200, "Your password has changed")

	token, _, err := s.accounts.Reset(t.Context(), a.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	c := s.browser()
	c.get("/reset?token=nonsense").says(t, 422, `id="token-error">This link is not valid`)
	c.get("/reset").says(t, 200, "The token that the operator of this service sent you.")
	c.post("/reset", url.Values{"password": {goodPassword}}).says(t, 422, `id="token-error">This field is required.`)
	c.get("/reset?token="+token).says(t, 200, "Set a new password")
	c.post("/reset", url.Values{"token": {token}, "password": {"short"}}).says(t, 422, `id="password-error"`)
	c.post("/reset", url.Values{"token": {token}, "password": {goodPassword}}).leads(t, "/")
	c.get("/").says(t, 200, "Your password was set.")
	c.post("/reset", url.Values{"token": {token}, "password": {goodPassword}}).says(t, 422, "This link is not valid")
	b.get("/account").leads(t, "/signin?next=%2Faccount")
}

func TestInvitations(t *testing.T) {
	s := serve(t, account.RegistrationInvited)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	s.browser().get("/signup").says(t, 200, "You need an invitation")
	s.browser().post("/signup", url.Values{"email": {"b@example.org"}, "password": {goodPassword}}).says(t, 422, `id="invitation-error">This field is required.`)
	s.browser().post("/signup", url.Values{"email": {"b@example.org"}, "password": {goodPassword}, "invitation": {"made up"}}).says(t, 422, `id="invitation-error">This invitation is not valid`, `value="made up"`)

	p := operator.post("/invitations", url.Values{"email": {"b@example.org"}, "role": {"user"}, "expires": {"7"}})
	p.says(t, 200, "Send this link", "b@example.org")
	link := regexp.MustCompile(`<pre id="invitation-link">` + s.url + `(/signup\?invitation=[0-9a-f]+)</pre>`).FindStringSubmatch(p.body)
	if link == nil {
		t.Fatalf("no link in %s", p.text())
	}
	token := strings.TrimPrefix(link[1], "/signup?invitation=")
	b := s.browser()
	b.get(link[1]).says(t, 200, "You were invited", `value="b@example.org"`)
	b.post("/signup", url.Values{"email": {"b@example.org"}, "password": {goodPassword}, "invitation": {token}}).leads(t, "/")
	b.get("/").says(t, 200, "b@example.org")
	s.browser().get(link[1]).says(t, 200, "This invitation is not valid")
	operator.get("/invitations").says(t, 200, "used by b@example.org")

	operator.post("/invitations", url.Values{"role": {"owner"}, "expires": {"7"}}).says(t, 422, `id="role-error"`)
	operator.post("/invitations", url.Values{"role": {"user"}, "expires": {"1"}}).says(t, 200, "Send this link")
	all, err := s.accounts.Invitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := slices.IndexFunc(all, func(i account.Invitation) bool { return i.Open(time.Now()) })
	withdraw := "/invitations/" + all[open].ID + "/withdraw"
	operator.get("/invitations").says(t, 200, `href="`+withdraw+`"`)
	operator.get(withdraw).says(t, 200, "Withdraw this invitation?", "stops working at once", `action="`+withdraw+`"`)
	if again, err := s.accounts.Invitations(t.Context()); err != nil || !again[open].Withdrawn.IsZero() {
		t.Errorf("after the question alone, the invitation is withdrawn: %+v, %v", again, err)
	}
	operator.post(withdraw, nil).leads(t, "/invitations")
	operator.get(withdraw).leads(t, "/invitations") // it has ended
	operator.get("/invitations").says(t, 200, "The invitation was withdrawn.")
	operator.post("/invitations/nonsense/withdraw", nil).says(t, 404)
}

// Whoever has an invitation that is over is told what to do, whichever page says so.
func TestInvitationsThatAreOver(t *testing.T) {
	s := serve(t, account.RegistrationInvited)
	owner, of := s.newUser("owner@example.org", account.RoleUser)
	guest, _ := s.newUser("guest@example.org", account.RoleUser)
	team, err := s.accounts.CreateTeam(t.Context(), "Stones", of.ID)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimPrefix(owner.invite("/teams/"+team.ID.String(), "", "member"), "/teams/join?invitation=")
	all, err := s.accounts.TeamInvitations(t.Context(), team.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("invitations %+v, %v", all, err)
	}
	join := url.Values{"invitation": {token}}
	guest.get("/teams/join?"+join.Encode()).says(t, 200, "Join the team")
	if _, err := s.accounts.Withdraw(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	const advice = "Ask the person who invited you for another one."
	stranger := s.browser()
	stranger.get("/signup?"+join.Encode()).says(t, 200, advice)
	typed := url.Values{"email": {"b@example.org"}, "password": {goodPassword}, "invitation": {token}}
	stranger.post("/signup", typed).says(t, 422, advice)
	stranger.get("/teams/join?"+join.Encode()).says(t, 422, advice, `href="/signin?next=%2Fteams%2Fjoin%3Finvitation%3D`+token)
	guest.get("/teams/join?"+join.Encode()).says(t, 422, advice, "You are signed in as guest@example.org", "Your teams")
	guest.post("/teams/join", join).says(t, 422, advice, "You are signed in as guest@example.org", "Your teams")

	other, _, err := s.accounts.Invite(t.Context(), account.NewInvitation{Email: "c@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	typed.Set("invitation", other)
	stranger.post("/signup", typed).says(t, 422, "use that one, or ask the person who invited you for another invitation.")

	open := serve(t, account.RegistrationOpen).browser()
	open.get("/signup?"+join.Encode()).says(t, 200, advice, `You need no invitation here: <a href="/signup">create an account</a> without one.`)
	closed := serve(t, account.RegistrationClosed).browser()
	closed.post("/signup", typed).says(t, 422, "Registration is closed. Ask the operator of this service for an account.")
}

// A link that is over leads to the page on which to get another one.
func TestLinksThatAreOver(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	s.browser().get("/reset?token=0").says(t, 422, "This link is not valid", "ask the operator of this service for another one")
	s.browser().get("/account/confirm?token=0").says(t, 200, "This link is not valid", `href="/account"`)
}

func TestRegistrationClosed(t *testing.T) {
	s := serve(t, account.RegistrationClosed)
	s.browser().get("/signup").says(t, 200, "Registration is closed")
	s.browser().post("/signup", url.Values{"email": {"b@example.org"}, "password": {goodPassword}}).says(t, 422, "Registration is closed")
}

// The home page of a server without an operator says where the link is that creates one,
// and does not show it. The link works once.
func TestFirstOperator(t *testing.T) {
	s := serve(t, account.RegistrationClosed)
	if p := s.browser().get("/"); strings.Contains(p.body, "no operator yet") {
		t.Error("without a link, the home page says where it is")
	}
	token, _, _ := s.accounts.AllowFirst()
	b := s.browser()
	home := b.get("/")
	home.says(t, 200, "This server has no operator yet", "journalctl")
	if strings.Contains(home.body, token) || strings.Contains(home.body, "/setup") {
		t.Error("the home page shows the link")
	}
	b.get("/setup").says(t, 200, "This link is not valid")
	b.get("/setup?token="+token[1:]+"0").says(t, 200, "This link is not valid")
	b.get("/setup?token="+token).says(t, 200, "Create the first operator", token)
	typed := url.Values{"token": {token}, "email": {"a@example.org"}, "password": {"short"}}
	b.post("/setup", typed).says(t, 422, `id="password-error"`, `value="a@example.org"`)
	typed.Set("password", goodPassword)
	b.post("/setup", typed, "Sec-Fetch-Site", "cross-site").says(t, 403)
	b.post("/setup", typed).leads(t, "/")
	b.get("/people").says(t, 200, "a@example.org")
	typed.Set("email", "b@example.org")
	again := s.browser()
	again.post("/setup", typed).says(t, 422, "This link is not valid")
	if p := again.get("/"); strings.Contains(p.body, "no operator yet") {
		t.Error("the home page still asks for an operator")
	}
}
