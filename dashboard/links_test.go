package dashboard

import (
	"net/url"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// TestLinksBeginWithTheURL: links that are passed on begin with the configured URL, wherever the dashboard was visited
// when they were made.
func TestLinksBeginWithTheURL(t *testing.T) {
	const public = "https://dash.example.org"
	configured := ""
	s := serveWith(t, account.RegistrationInvited, func(_ string, c *site.Config) {
		c.URL = func() string { return configured }
	})
	operator, a := s.newUser("operator@example.org", account.RoleOperator)
	_, other := s.newUser("other@example.org", account.RoleUser)
	team, err := s.accounts.CreateTeam(t.Context(), "Team", a.ID)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.accounts.CreateToken(t.Context(), a.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{s.url, public} {
		if want == public {
			configured = public
		}
		operator.post("/invitations", url.Values{"role": {"user"}, "expires": {"7"}}).
			says(t, 200, `<pre id="invitation-link">`+want+"/signup?invitation=")
		operator.post("/people/"+other.ID.String(), url.Values{"do": {"reset"}, "proof-password": {goodPassword}}).
			says(t, 200, want+"/reset?token=")
		operator.post("/teams/"+team.ID.String()+"/invitations", url.Values{"role": {"viewer"}, "expires": {"7"}}).
			says(t, 200, `<pre id="invitation-link">`+want+"/teams/join?invitation=")
		s.browser().ask("POST", "/api/v1/teams/"+team.ID.String()+"/invitations", token, `{"role":"viewer"}`).
			says(t, 201, `"link":"`+want+"/teams/join?invitation=")
	}
}
