package dashboard

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/totp"
)

var (
	shownSecret = regexp.MustCompile(`name="secret" value="([A-Z2-7]{32})"`)
	shownCodes  = regexp.MustCompile(`[a-z2-7]{4}(?:-[a-z2-7]{4}){3}`)
)

// newFactor adds a second factor to the account of a browser, and returns its recovery codes.
func newFactor(t *testing.T, b *browser) (secret totp.Secret, recovery []string) {
	t.Helper()
	found := shownSecret.FindStringSubmatch(b.get("/account/factor").body)
	if found == nil {
		t.Fatal("the page shows no secret")
	}
	secret = totp.Secret(found[1])
	code, err := secret.Code(totp.Step(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"secret": found[1:], "code": {"000000"}, "add-password": {goodPassword}}
	b.post("/account/factor", form).says(t, 422, "This is not the current code", string(secret), "<svg")
	form = url.Values{"secret": found[1:], "code": {code}, "add-password": {"wrong wrong"}}
	b.post("/account/factor", form).says(t, 422, `id="add-password-error"`, string(secret))
	form.Set("add-password", goodPassword)
	p := b.post("/account/factor", form)
	p.says(t, 200, "Keep these recovery codes", "10 codes are left")
	if strings.Contains(p.body, string(secret)) {
		t.Error("the secret is shown again")
	}
	return secret, shownCodes.FindAllString(p.body, -1)
}

// A user adds a second factor, signs in with it, and removes it.
func TestSecondFactor(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	_, recovery := newFactor(t, b)
	if len(recovery) != 10 {
		t.Fatalf("recovery codes %q", recovery)
	}
	b.get("/account").says(t, 200, "with 10 recovery codes left") // still signed in
	other := s.browser()
	other.get("/signin/code").leads(t, "/signin")
	other.post("/signin/code", url.Values{"code": {recovery[0]}}).leads(t, "/signin")
	other.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}, "next": {"/usage"}}).leads(t, "/signin/code")
	other.get("/keys").leads(t, "/signin?next=%2Fkeys")
	other.get("/signin/code").says(t, 200, `autocomplete="one-time-code"`)
	other.post("/signin/code", url.Values{"code": {"123456"}}).says(t, 422, "This code is not valid")
	other.post("/signin/code", url.Values{"code": {recovery[0]}}).leads(t, "/usage")
	other.get("/signin/code").leads(t, "/signin")
	b.post("/account/factor/recovery", url.Values{"renew-code": {recovery[0]}, "renew-password": {goodPassword}}).says(t, 422, `id="renew-code-error"`)
	p := b.post("/account/factor/recovery", url.Values{"renew-code": {recovery[1]}, "renew-password": {goodPassword}})
	p.says(t, 200, "10 codes are left")
	recovery = shownCodes.FindAllString(p.body, -1)
	b.post("/account/factor/remove", url.Values{"remove-code": {recovery[0]}, "remove-password": {goodPassword}}).leads(t, "/account")
	b.get("/account").says(t, 200, "The authenticator app was removed", "Turn it on")
}

// The last recovery code is announced as one.
func TestLastRecoveryCode(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	_, recovery := newFactor(t, b)
	for i, code := range recovery[1:] {
		by := account.Reproof{Password: goodPassword, Proof: account.Proof{Code: code}, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
		if err := s.accounts.Reprove(t.Context(), a.ID, by); err != nil {
			t.Fatal(err)
		}
	}
	b.get("/account").says(t, 200, "with 1 recovery code left")
	b.get("/account/factor").says(t, 200, "1 code is left")
}

// An operator resets the second factor of another account, but not their own.
func TestOperatorResetsSecondFactor(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	operator, o := s.newUser("operator@example.org", account.RoleOperator)
	newFactor(t, b)
	_, recovery := newFactor(t, operator)
	path := "/people/" + a.ID.String()
	operator.get(path).says(t, 200, "Second factor", "Reset it")
	operator.post(path, url.Values{"do": {"reset-factor"}, "proof-password": {goodPassword}, "proof-code": {recovery[0]}}).leads(t, path)
	operator.get(path).says(t, 200, "The second factor was reset")
	operator.post(path, url.Values{"do": {"reset-factor"}}).says(t, 422, "The account has no second factor")
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	b.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}}).leads(t, "/")
	operator.post("/people/"+o.ID.String(), url.Values{"do": {"reset-factor"}}).says(t, 422, "Remove your own second factor")
	operator.get("/audit?account="+a.ID.String()).says(t, 200, "Reset the second factor of account", "operator@example.org")
}
