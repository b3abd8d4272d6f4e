package dashboard

import (
	"net/url"
	"testing"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/dashboard/site"
)

// stored counts the sessions that are stored for new visitors who send the same request. A session
// is a row that stays for a day.
func stored(s *service, send func(*browser) page) (n int, last page) {
	for range 100 {
		if last = send(s.browser()); last.header.Get("Set-Cookie") != "" {
			n++
		}
	}
	return n, last
}

// Visitors who are not signed in cannot store sessions at any rate, which would fill the disk.
func TestVisitorsStoreFewSessions(t *testing.T) {
	provider := startStub(t)
	s := serveWith(t, account.RegistrationInvited, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: provider, Client: "ashlar", Name: "Example"})
	})
	n, last := stored(s, func(b *browser) page { return b.post("/signin/code", url.Values{"code": {"123456"}}) })
	if n > 0 {
		t.Errorf("%d of 100 codes without a sign-in store a session", n)
	}
	last.leads(t, "/signin")
	s.stopClock() // or the last of them could be let through on a busy machine
	n, last = stored(s, func(b *browser) page { return b.get("/signin/provider") })
	if n != 20 {
		t.Errorf("%d of 100 sign-ins with a provider store a session, expected 20", n)
	}
	last.says(t, 429, "Too many attempts")
}
