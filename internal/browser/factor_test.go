package browser

import (
	"testing"
	"time"

	"ashlar/account/totp"

	"github.com/chromedp/chromedp"
)

// A user adds a second factor and signs in with it, with scripts off. The pages fit all screens.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	chromium(t)
	const password = "a stone on a stone"
	url, _ := serveBusy(t, time.Hour)
	folder := screenshots(t)
	b := openTab(t, url, false)
	b.lookAt(shot{"sign-in-provider", at("/signin")}, folder)
	b.signIn("busy@example.org", password)
	b.lookAt(shot{"account-provider", at("/account")}, folder)
	b.lookAt(shot{"factor", at("/account/factor")}, folder)
	secret := totp.Secret(run(b, chromedp.Text("#secret")))
	b.enter("#code", b.code(secret, time.Now()))
	b.enter("#add-password", password)
	b.follow("main form button.primary")
	b.sees("#recovery-codes", "-")
	b.lookAt(shot{"factor-codes", func(b *tab) { b.there("#recovery-codes") }}, folder)
	b.lookAt(shot{"factor-on", at("/account/factor")}, folder)

	other := openTab(t, url, false)
	other.open("/signin")
	other.enter("#email", "busy@example.org")
	other.enter("#password", password)
	other.follow("main form button.primary")
	other.lookAt(shot{"sign-in-code", func(b *tab) { b.sees("h1", "Second factor") }}, folder)
	other.enter("#code", b.code(secret, time.Now().Add(30*time.Second))) // the next one: the first is used
	other.follow("main form button.primary")
	other.sees("h1", "Overview")
}

func (b *tab) code(secret totp.Secret, at time.Time) string {
	b.Helper()
	code, err := secret.Code(totp.Step(at))
	if err != nil {
		b.Fatal(err)
	}
	return code
}
