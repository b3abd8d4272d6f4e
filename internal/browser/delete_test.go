package browser

import (
	"strings"
	"testing"
)

// A user deletes the account, with scripts and without, and can sign up again.
func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	chromium(t)
	const email, password = "leaver@example.org", "a stone on a stone"
	s := serve(t)
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			b := openTab(t, s.url, scripts)
			b.signUp(email, password)
			line := b.createKey(scripts)
			if out := paste(t, line); !strings.Contains(out, `"result":"0x`) {
				t.Fatalf("%s\nanswers %s", line, out)
			}
			b.open("/account")
			b.follow("a[href='/account/delete']")
			b.sees("main", "1 key stops working at once")
			b.enter("#name", "somebody@example.org")
			b.enter("#password", password)
			b.follow("main form button.danger")
			b.sees("#name-error", "not the account")
			b.open("/account/delete")
			b.enter("#name", email)
			b.enter("#password", password)
			b.follow("main form button.danger")
			b.sees("h1", "Your account was deleted")
			if out := paste(t, line); !strings.HasSuffix(out, "401") {
				t.Errorf("with a key of the deleted account\n%s\nanswers %s", line, out)
			}
			b.lookAt(shot{"account-deleted", func(b *tab) { b.there(".narrow h1") }}, screenshots(t))
			b.open("/signin")
			b.enter("#email", email)
			b.enter("#password", password)
			b.follow("main form button.primary")
			b.sees("main", "is wrong")
		})
	}
}
