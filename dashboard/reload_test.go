package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"testing"

	"ashlar/account"
)

// After a form was rejected, the address bar has the path of the form. Opening it again, from the bar, a
// bookmark or a restored tab, leads to the page with the form instead of to an error.
func TestPathsOfFormsLeadToTheirPages(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	made, err := s.accounts.CreateTeam(t.Context(), "Team", a.ID)
	if err != nil {
		t.Fatal(err)
	}
	team := "/teams/" + made.ID.String()
	b.post("/account/password", url.Values{"current": {"wrong"}, "password": {"short"}}).says(t, 422)
	for path, page := range map[string]string{
		"/account/password":                   "/account",
		"/account/provider/remove":            "/account",
		"/account/factor/recovery":            "/account/factor",
		"/account/tokens/0123456789ab/revoke": "/account/tokens",
		"/account/passkeys/remove":            "/account/passkeys",
		"/account/password?x=//evil.test":     "/account",
		"/signin/passkey/answer":              "/signin",
		"/signout":                            "/",
		team + "/members/0123":                team + "/members",
		team + "/name":                        team,
	} {
		b.get(path).leads(t, page)
	}
	if p := b.get("/account/nothing"); p.status != http.StatusNotFound {
		t.Errorf("a path without a form: %d", p.status)
	}
	if p := s.browser().get("/account/password"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/account" {
		t.Errorf("without a session: %d to %q", p.status, p.header.Get("Location"))
	}
}

// A form that is sent after the session has ended leads to the page to sign in, and from there back to the page with
// the form.
func TestFormsAfterTheSessionLeadBack(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	_, a := s.newUser("a@example.org", account.RoleUser)
	guest, _ := s.newUser("b@example.org", account.RoleUser)
	made, err := s.accounts.CreateTeam(t.Context(), "Team", a.ID)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.accounts.Invite(t.Context(), account.NewInvitation{Team: made.ID, TeamRole: account.TeamViewer, By: a.ID})
	if err != nil {
		t.Fatal(err)
	}
	join := "/teams/join?invitation=" + token // the path alone is no page
	guest.get(join).says(t, 200, `action="`+join+`"`)
	team := "/teams/" + made.ID.String()
	for form, page := range map[string]string{
		"/keys/new":            "/keys/new",
		team + "/members/0123": team + "/members",
		"/account/password":    "/account",
		join:                   join,
	} {
		b := s.browser()
		asked := "/signin?next=" + url.QueryEscape(form)
		b.post(form, url.Values{"name": {"x"}}).leads(t, asked)
		b.get(asked).says(t, 200, `name="next" value="`+html.EscapeString(form)+`"`)
		b.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}, "next": {form}}).leads(t, form)
		if form != page {
			b.get(form).leads(t, page)
		}
	}
}
