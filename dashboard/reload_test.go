package dashboard

import (
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
