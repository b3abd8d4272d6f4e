package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// pick selects an option of a list by its value.
func (b *tab) pick(selector, value string) {
	b.Helper()
	b.there(selector)
	run(b, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q).value = %q; true", selector, value)))
}

// An operator proves who they are to invite another operator, to make a link for a password, this with a passkey, and
// to delete an account. The other operator does so with scripts off. The pages fit all screens.
func TestOperatorsProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	chromium(t)
	const password = "a stone on a stone"
	url, _ := serveBusy(t, time.Hour)
	url = strings.Replace(url, "127.0.0.1", "localhost", 1) // an address has no passkeys
	folder := screenshots(t)
	b := openTab(t, url, true)
	b.addDevice()
	b.signIn("busy@example.org", password)

	invite := func(email string) {
		b.open("/invitations")
		b.enter("#email", email)
		b.pick("#role", "operator")
		b.follow("main form button.primary")
		b.sees("h1", "Invite an operator?")
		b.sees("main", "The invitation is for "+email)
	}
	b.lookAt(shot{"prove-invitation", func(b *tab) { invite("second@example.org") }}, folder)
	b.lookAt(shot{"prove-wrong", func(b *tab) {
		invite("second@example.org")
		b.enter("#proof-password", "not the password")
		b.follow("main form button.primary")
		b.sees("#proof-password-error", "This is not your current password")
	}}, folder)
	b.enter("#proof-password", password)
	b.follow("main form button.primary")
	link := strings.TrimPrefix(b.text("#invitation-link"), url)
	b.sees("tbody", "second@example.org")

	other := openTab(t, url, false)
	other.open(link)
	other.enter("#password", password)
	other.follow("main form button.primary")
	other.sees(".side", "For operators")

	b.open("/account/passkeys")
	b.enter("#name", "Laptop")
	b.enter("#add-password", password)
	b.follow("form[action='/account/passkeys'] button.primary")
	b.awaits("#recovery-codes")
	person := func(b *tab, email string) {
		b.open("/people?q=" + email)
		b.follow("tbody a[href^='/people/']")
		b.sees("h1", email)
	}
	ask := func(b *tab) {
		person(b, "second@example.org")
		b.follow("main form button[value=reset]")
		b.sees("h1", "Make a link to set a password?")
	}
	b.lookAt(shot{"prove-passkey", ask}, folder)
	b.enter("#proof-password", password)
	b.do(chromedp.Click(chromedp.CSS(insteadButton)))
	b.awaits("#reset-link")

	other.lookAt(shot{"prove-factor", func(b *tab) {
		person(b, "busy@example.org")
		b.follow("main form button[value=reset-factor]")
		b.there("main form button.danger")
	}}, folder)
	other.enter("#proof-password", password)
	other.follow("main form button.danger")
	other.sees(".notice", "The second factor was reset")

	b.signIn("busy@example.org", password) // the reset has ended the session
	b.lookAt(shot{"prove-deletion", func(b *tab) {
		person(b, "second@example.org")
		b.follow("a[href$='/delete']")
	}}, folder)
	b.enter("#name", "second@example.org")
	b.enter("#password", password)
	b.follow("main form button.danger")
	b.sees(".notice", "The account second@example.org was deleted")
}
