package dashboard

import (
	"encoding/base64"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/account/passkey/passkeytest"
)

// atLocalhost serves a dashboard at a host that may have passkeys.
func atLocalhost(t *testing.T) *service {
	t.Helper()
	s := serve(t, account.RegistrationOpen)
	s.url = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	return s
}

var passkeyOptions = regexp.MustCompile(`data-passkey-(?:use|make)="([^"]+)"`)

// options returns what a page's script would give to the browser.
func (p page) options(t *testing.T) string {
	t.Helper()
	found := passkeyOptions.FindStringSubmatch(p.body)
	if found == nil {
		t.Fatalf("%d: the page asks for no passkey: %s", p.status, p.text())
	}
	return html.UnescapeString(found[1])
}

// newPasskey registers a passkey of a browser's account on a new device. proof is what the form
// needs besides the name and the password.
func newPasskey(t *testing.T, b *browser, name string, proof url.Values) (d *passkeytest.Device, made page) {
	t.Helper()
	form := url.Values{"name": {name}, "add-password": {goodPassword}}
	for field, value := range proof {
		form[field] = value
	}
	p := b.post("/account/passkeys", form)
	p.says(t, 200, name, "data-passkey-make")
	d = passkeytest.New(t, b.s.url)
	return d, b.post("/account/passkeys/made", url.Values{"passkey": {d.Create(p.options(t))}})
}

// arriveWith signs in with the passkey of a device.
func arriveWith(t *testing.T, b *browser, d *passkeytest.Device) page {
	t.Helper()
	p := b.post("/signin/passkey", url.Values{"next": {"/usage"}})
	p.says(t, 200, `name="next" value="/usage"`, "Passkeys need scripts")
	return b.post("/signin/passkey/answer", url.Values{"next": {"/usage"}, "passkey": {d.Get(p.options(t))}})
}

// A user registers a passkey, signs in with it alone, proves changes with it, and removes it.
func TestPasskey(t *testing.T) {
	s := atLocalhost(t)
	b, a := s.newUser("a@example.org", account.RoleUser)
	b.get("/account/passkeys").says(t, 200, "Add a passkey", "your password alone does not give access")
	b.post("/account/passkeys", url.Values{"name": {"Laptop"}, "add-password": {"wrong wrong"}}).says(t, 422, "This is not your current password")
	b.post("/account/passkeys", url.Values{"name": {""}, "add-password": {goodPassword}}).says(t, 422, "This field is required")
	d, p := newPasskey(t, b, "Laptop", nil)
	p.says(t, 200, "Keep these recovery codes", "Laptop", "password and code", "never")
	recovery := shownCodes.FindAllString(p.body, -1)
	b.get("/account").says(t, 200, "You have one passkey", "with 10 recovery codes left") // still signed in

	other := s.browser()
	other.get("/signin").says(t, 200, "Sign in with a passkey")
	arriveWith(t, other, d).leads(t, "/usage")
	other.get("/keys").says(t, 200, "a@example.org")
	other.post("/signout", nil).leads(t, "/")

	b.post("/account/passkeys", url.Values{"name": {"Phone"}, "add-password": {goodPassword}, "add-code": {"123456"}}).says(t, 422, `id="add-code-error"`)
	p = b.get("/account/passkeys")
	_, p = newPasskey(t, b, "Phone", url.Values{"passkey": {d.Get(p.options(t))}})
	p.leads(t, "/account/passkeys")
	p = b.get("/account/passkeys")
	p.says(t, 200, "The passkey was added", "Laptop", "Phone")
	p = b.post("/account/factor/recovery", url.Values{"renew-password": {goodPassword}, "passkey": {d.Get(p.options(t))}})
	p.says(t, 200, "10 codes are left")
	first := recovery
	if recovery = shownCodes.FindAllString(p.body, -1); slices.Equal(recovery, first) {
		t.Errorf("the codes are still %v", first)
	}

	which := base64.RawURLEncoding.EncodeToString(d.ID)
	b.post("/account/passkeys/remove", url.Values{"which": {which}, "remove-code": {recovery[0]}}).says(t, 422, `id="remove-password-error"`)
	b.post("/account/passkeys/remove", url.Values{"which": {"AAAA"}, "remove-code": {recovery[0]}, "remove-password": {goodPassword}}).says(t, 422, "Choose one of these")
	b.post("/account/passkeys/remove", url.Values{"which": {which}, "remove-code": {recovery[0]}, "remove-password": {goodPassword}}).leads(t, "/account/passkeys")
	arriveWith(t, other, d).says(t, 422, "This passkey is not registered here")
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	operator.get("/people/"+a.ID.String()).says(t, 200, "one passkey", "Reset it")
	operator.get("/audit?account="+a.ID.String()).says(t, 200, "Add a passkey to account", "Remove a passkey of account", "Sign in to account")
}

// A passkey that does not verify its user is the second step after the password, and no more.
func TestPasskeyAsSecondFactor(t *testing.T) {
	s := atLocalhost(t)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	d, _ := newPasskey(t, b, "Key", nil)
	d.Flags = passkeytest.Present
	other := s.browser()
	arriveWith(t, other, d).says(t, 422, "Your device did not verify that it is you")
	other.get("/keys").leads(t, "/signin?next=%2Fkeys")
	other.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}, "next": {"/usage"}}).leads(t, "/signin/code")
	p := other.get("/signin/code")
	p.says(t, 200, "Recovery code", base64.RawURLEncoding.EncodeToString(d.ID))
	answer := d.Get(p.options(t))
	stranger := passkeytest.New(t, s.url)
	other.post("/signin/code", url.Values{"passkey": {stranger.Get(p.options(t))}}).says(t, 422, "This passkey is not registered here")
	other.post("/signin/code", url.Values{"passkey": {answer}}).says(t, 422, "This took too long, or was answered already") // the challenge is used
	other.post("/signin/code", url.Values{"passkey": {d.Get(other.get("/signin/code").options(t))}}).leads(t, "/usage")
	other.get("/keys").says(t, 200)
}

// Answers to other pages, of other browsers, that came before, and of copies are refused.
func TestRefusedPasskeys(t *testing.T) {
	s := atLocalhost(t)
	b, a := s.newUser("a@example.org", account.RoleUser)
	d, _ := newPasskey(t, b, "Key", nil)
	other := s.browser()
	evil := *d
	evil.Origin = "https://evil.example"
	arriveWith(t, other, &evil).says(t, 422, "This answer of a passkey is not valid")
	evil = *d
	evil.Host = "evil.example"
	arriveWith(t, other, &evil).says(t, 422, "This answer of a passkey is not valid")

	answer := d.Get(other.post("/signin/passkey", nil).options(t))
	s.browser().post("/signin/passkey/answer", url.Values{"passkey": {answer}}).says(t, 422, "This took too long")
	other.post("/signin/passkey/answer", url.Values{"passkey": {answer}}).leads(t, "/")
	other.post("/signout", nil).leads(t, "/")
	other.post("/signin/passkey/answer", url.Values{"passkey": {answer}}).says(t, 422, "This took too long")
	other.post("/signin/passkey", nil).says(t, 200)
	other.post("/signin/passkey/answer", url.Values{"passkey": {answer}}).says(t, 422, "This took too long")
	other.post("/signin/passkey/answer", nil).says(t, 422, "This answer of a passkey is not valid")
	other.post("/signin/passkey/answer", url.Values{"passkey": {"{"}}).says(t, 422, "This answer of a passkey is not valid")

	copied := *d
	arriveWith(t, other, d).leads(t, "/usage")
	arriveWith(t, s.browser(), &copied).says(t, 422, "a copy of it is in use")
	arriveWith(t, s.browser(), d).says(t, 422, "a copy of it is in use")
	other.get("/account/passkeys").says(t, 200, "blocked", "Remove it.")
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	operator.get("/audit?account="+a.ID.String()).says(t, 200, "Block a copied passkey of account")
}

// A passkey is registered only by the session that began, for the account that began, once.
func TestMadePasskeys(t *testing.T) {
	s := atLocalhost(t)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	other, _ := s.newUser("b@example.org", account.RoleUser)
	p := b.post("/account/passkeys", url.Values{"name": {"Key"}, "add-password": {goodPassword}})
	d := passkeytest.New(t, s.url)
	made := url.Values{"passkey": {d.Create(p.options(t))}}
	other.post("/account/passkeys/made", made).says(t, 422, "This took too long")
	s.browser().post("/account/passkeys/made", made).leads(t, "/signin?next="+url.QueryEscape("/account/passkeys/made"))
	b.post("/account/passkeys/made", made).says(t, 200, "Keep these recovery codes")
	b.post("/account/passkeys/made", made).says(t, 422, "This took too long")
}

// Where browsers support no passkeys, the pages say so. Behind a proxy that ends TLS they do.
func TestWherePasskeysWork(t *testing.T) {
	s := serve(t, account.RegistrationOpen) // at 127.0.0.1
	b, _ := s.newUser("a@example.org", account.RoleUser)
	b.get("/account/passkeys").says(t, 200, "Passkeys need a host name, and HTTPS unless it is localhost")
	p := s.browser().get("/signin")
	if strings.Contains(p.body, "passkey") {
		t.Error("the page offers passkeys")
	}
	s.browser().post("/signin/passkey", nil).says(t, 422, "Passkeys need a host name")

	request := httptest.NewRequest(http.MethodPost, "https://rpc.example.org/signin/passkey", nil) // its URL is what the gateway makes of a proxy's headers
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	proxied := page{recorder.Code, recorder.Header(), recorder.Body.String()}
	if options := proxied.options(t); !strings.Contains(options, `"rpId":"rpc.example.org"`) {
		t.Errorf("behind a proxy: %s", options)
	}
}
