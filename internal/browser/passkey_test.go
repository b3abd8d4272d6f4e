package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// device is a virtual authenticator of a browser, such as a laptop with a fingerprint reader.
type device struct {
	*tab
	id webauthn.AuthenticatorID
}

func (b *tab) addDevice() device {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.Fatal(err)
	}
	added, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.Fatal(err)
	}
	return device{b, added.AuthenticatorID}
}

// isTouched reports whether the user touches the device when it is used.
func (d device) isTouched(touched bool) {
	d.Helper()
	if _, err := chromedp.Call(d.ctx, webauthn.SetAutomaticPresenceSimulation, webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: d.id, Enabled: touched}); err != nil {
		d.Fatal(err)
	}
}

// verifies reports whether the device recognizes its user.
func (d device) verifies(user bool) {
	d.Helper()
	if _, err := chromedp.Call(d.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: d.id, IsUserVerified: user}); err != nil {
		d.Fatal(err)
	}
}

// addCredential adds a passkey to a device. The type of package webauthn always sends members
// that this kind of device rejects.
var addCredential = cdp.Command[addCredentialParams, cdp.Empty]{Method: webauthn.CommandAddCredential}

type addCredentialParams struct {
	AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
	Credential      credential               `json:"credential"`
}

type credential struct {
	ID         []byte `json:"credentialId"`
	Resident   bool   `json:"isResidentCredential"`
	Host       string `json:"rpId"`
	PrivateKey []byte `json:"privateKey"`
	UserHandle []byte `json:"userHandle"`
	SignCount  int    `json:"signCount"`
}

// restore replaces the passkey of the device by a copy with an earlier counter.
func (d device) restore() {
	d.Helper()
	found, err := chromedp.Call(d.ctx, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil || len(found.Credentials) != 1 {
		d.Fatalf("the device has %d passkeys, %v", len(found.Credentials), err)
	}
	if _, err := chromedp.Call(d.ctx, webauthn.ClearCredentials, webauthn.ClearCredentialsParams{AuthenticatorID: d.id}); err != nil {
		d.Fatal(err)
	}
	c := found.Credentials[0]
	copied := addCredentialParams{d.id, credential{c.CredentialID, true, c.RpID, c.PrivateKey, c.UserHandle, 1}}
	if _, err := chromedp.Call(d.ctx, addCredential, copied); err != nil {
		d.Fatal(err)
	}
}

// awaits waits until an element is on the page, which a script may have left meanwhile.
func (b *tab) awaits(selector string) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf("document.readyState === 'complete' && document.querySelector(%q) !== null", selector)))
		if err == nil && found {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s is not on the page, %v\n%s", selector, err, b.shown())
		}
	}
}

// signOut ends the session.
func (b *tab) signOut() {
	b.Helper()
	b.do(chromedp.EmulateViewport(1280, 900)) // narrow pages have the button in a menu
	b.open("/account")
	b.follow("header.side > .whoami button")
}

const (
	passkeyButton  = "button[form=by-passkey]"
	insteadButton  = "main form button[data-passkey]"
	passkeyProblem = ".notice.bad, [data-passkey-said]:not(:empty)"
)

// arrive signs in with a passkey, and ends on the page with an element. An address may try that every two seconds once
// it has used up its attempts, as a fast machine does, so it tries again when there were too many.
func (b *tab) arrive(selector string) {
	b.Helper()
	const refused = ".head p.quiet + h1" // of the page about an error
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Second) {
		b.open("/signin")
		b.follow(passkeyButton)
		b.awaits(selector + ", " + refused)
		if !run(b, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q) !== null", refused))) {
			return
		}
		if b.sees(refused, "Too many attempts"); time.Now().After(end) {
			b.Fatalf("%s: there are still too many attempts", selector)
		}
	}
}

// A user registers a passkey in a real browser, and signs in with it alone, and as the second
// factor when the device does not recognize its user. Other sites, copies, and a passkey that was
// removed lead nowhere. The pages fit all screens.
func TestPasskey(t *testing.T) {
	t.Parallel()
	chromium(t)
	const password = "a stone on a stone"
	url, _ := serveBusy(t, time.Hour)
	url = strings.Replace(url, "127.0.0.1", "localhost", 1) // an address has no passkeys
	folder := screenshots(t)
	still := func(selector string) func(*tab) { return func(b *tab) { b.there(selector) } }

	b := openTab(t, url, true)
	d := b.addDevice()
	b.signIn("busy@example.org", password)
	b.lookAt(shot{"passkeys-none", at("/account/passkeys")}, folder)
	d.isTouched(false)
	b.enter("#name", "Laptop")
	b.enter("#add-password", password)
	b.follow("form[action='/account/passkeys'] button.primary")
	b.lookAt(shot{"passkey-new", still("[data-passkey-make]")}, folder)
	d.isTouched(true)
	b.open("/account/passkeys")
	b.enter("#name", "Laptop")
	b.enter("#add-password", password)
	b.follow("form[action='/account/passkeys'] button.primary")
	b.awaits("#recovery-codes")
	recovery := strings.Fields(b.text("#recovery-codes"))
	b.sees("tbody", "password and code")
	b.lookAt(shot{"passkeys-codes", still("#recovery-codes")}, folder)
	b.lookAt(shot{"factor-passkey", at("/account/factor")}, folder)

	b.signOut()
	b.lookAt(shot{"sign-in-passkeys", at("/signin")}, folder)
	b.arrive(".side")
	b.sees("h1", "Overview")
	b.lookAt(shot{"passkeys", at("/account/passkeys")}, folder)
	b.phish(t)

	d.verifies(false)
	b.signOut()
	b.arrive(passkeyProblem)
	b.sees("[data-passkey-said]", "No passkey was used")
	b.lookAt(shot{"sign-in-passkey", still("[data-passkey-use]")}, folder)
	b.open("/signin")
	b.enter("#email", "busy@example.org")
	b.enter("#password", password)
	b.follow("main form button.primary")
	b.lookAt(shot{"sign-in-code-passkey", still("#code")}, folder)
	b.do(chromedp.Click(chromedp.CSS(insteadButton)))
	b.awaits(".side")
	d.verifies(true)

	time.Sleep(10 * time.Second) // in which five of the address's attempts come back: a fast machine has used nearly all
	d.restore()
	b.signOut()
	b.arrive(passkeyProblem)
	b.sees(".notice.bad", "a copy of it is in use")
	b.lookAt(shot{"passkey-refused", still(".notice.bad")}, folder)
	b.open("/signin")
	b.enter("#email", "busy@example.org")
	b.enter("#password", password)
	b.follow("main form button.primary")
	b.enter("#code", recovery[0])
	b.follow("main form button.primary")
	b.lookAt(shot{"passkeys-blocked", at("/account/passkeys")}, folder)
	b.enter("#remove-code", recovery[1])
	b.enter("#remove-password", password)
	b.follow("form[action='/account/passkeys/remove'] button.danger")
	b.sees(".notice", "The passkey was removed")
	b.signOut()
	b.arrive(passkeyProblem)
	b.sees(".notice.bad", "This passkey is not registered here")
}

// phish takes a challenge to a page of another origin with the same host, has the browser sign it
// there, and brings the answer back.
func (b *tab) phish(t *testing.T) {
	b.Helper()
	elsewhere, _ := serveBusy(t, 0)
	elsewhere = strings.Replace(elsewhere, "127.0.0.1", "localhost", 1)
	const begin = `fetch("/signin/passkey", { method: "POST", body: new URLSearchParams() }).then((r) => r.text())
	  .then((text) => new DOMParser().parseFromString(text, "text/html").querySelector("[data-passkey-use]").dataset.passkeyUse)`
	const sign = `navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(%q)) }).then(JSON.stringify)`
	const bring = `fetch("/signin/passkey/answer", { method: "POST", body: new URLSearchParams({ passkey: %q }) }).then((r) => r.text())`
	options := run(b, chromedp.Evaluate[string](begin, chromedp.EvalAwaitPromise))
	run(b, chromedp.NavigateResponse(elsewhere+"/docs"))
	answer := run(b, chromedp.Evaluate[string](fmt.Sprintf(sign, options), chromedp.EvalAwaitPromise))
	b.open("/docs")
	page := run(b, chromedp.Evaluate[string](fmt.Sprintf(bring, answer), chromedp.EvalAwaitPromise))
	if !strings.Contains(answer, "signature") || !strings.Contains(page, "This answer of a passkey is not valid") {
		b.Errorf("an answer for a page of another origin, %s, is answered with %s", answer, page)
	}
}
