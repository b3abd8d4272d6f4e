package dashboard

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/dashboard/site"

	"github.com/alexedwards/scs/v2"
)

// withoutPassword returns a browser with a session that began some time ago, of a user of a provider
// that does not answer now, and the end of the session.
func withoutPassword(t *testing.T, ago time.Duration) (s *service, b *browser, a account.Account, end time.Time) {
	t.Helper()
	end = time.Now().Add(time.Hour)
	s = serveWith(t, account.RegistrationInvited, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", Client: "ashlar", Secret: "x", Name: "Example"})
		who := oidc.Identity{Issuer: "http://127.0.0.1:1", Subject: "1", Email: "a@example.org", Verified: true}
		var session account.Session
		var err error
		if a, session, err = c.Accounts.Arrive(t.Context(), who, account.Provided{Create: true}); err != nil {
			t.Fatal(err)
		}
		stored, err := scs.GobCodec{}.Encode(end, map[string]any{"account": string(session), "began": time.Now().Add(-ago).Unix()})
		if err == nil {
			err = c.Sessions.Commit("signed-in", stored, end)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	b = s.browser()
	b.client.Jar.SetCookies(at, []*http.Cookie{{Name: "ashlar", Value: "signed-in"}})
	return s, b, a, end
}

// Ending all other sessions does not prolong the own one.
func TestSessionThatGoesOnIsNotProlonged(t *testing.T) {
	_, b, _, end := withoutPassword(t, 3*time.Hour)
	p := b.post("/account/sessions", nil)
	p.leads(t, "/account")
	response := http.Response{Header: p.header}
	if set := response.Cookies(); len(set) != 1 || set[0].Value == "signed-in" || set[0].Expires.After(end.Add(time.Minute)) {
		t.Errorf("the cookie is %v, expected another one until %v", set, end)
	}
	b.get("/account").says(t, 200, "All other sessions have ended.", "This one started 3 hours ago.")
}
