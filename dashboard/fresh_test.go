package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/account/totp"
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

// A user without a password is asked to sign in again before a change that lasts longer than the
// session: a session that leaked must not become lasting access.
func TestSensitiveChangesWithoutPassword(t *testing.T) {
	const again = "no password that could be asked for: sign out, sign in again, and repeat this within 10 minutes."
	s, b, a, _ := withoutPassword(t, 11*time.Minute)
	secret := totp.NewSecret()
	code, err := secret.Code(totp.Step(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	change := func() {
		t.Helper()
		b.post("/account/tokens", url.Values{"name": {"script"}, "expires": {"30"}}).says(t, 422, again)
		b.post("/account/factor", url.Values{"secret": {string(secret)}, "code": {code}}).says(t, 422, again)
		b.post("/account/delete", url.Values{"name": {"a@example.org"}}).says(t, 422, again)
		b.post("/account/provider", nil).says(t, 403, again)
		if p := b.post("/account/passkeys", url.Values{"name": {"phone"}}); p.status != 422 || strings.Contains(p.body, "data-passkey-make") {
			t.Errorf("a passkey is made: %d %s", p.status, p.text())
		}
	}
	change()
	b.post("/account/sessions", nil).leads(t, "/account")
	change()
	tokens, err := s.accounts.Tokens(a.ID)
	if now, err := s.accounts.Find("a@example.org"); err != nil || !now.SecondFactor.IsZero() {
		t.Errorf("the account is %+v, %v", now, err)
	}
	if err != nil || len(tokens) != 0 {
		t.Errorf("tokens %v are created, %v", tokens, err)
	}

	_, b, _, _ = withoutPassword(t, 9*time.Minute)
	b.post("/account/tokens", url.Values{"name": {"script"}, "expires": {"30"}}).says(t, 200, "Copy it now.")
	b.post("/account/provider", nil).says(t, http.StatusBadGateway, "does not answer as expected")
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
