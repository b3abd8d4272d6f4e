package browser

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/mail"
	"ashlar/account/mail/mailtest"
	"ashlar/account/password"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/dashboard"
	"ashlar/dashboard/site"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// serveWithMail serves a dashboard without networks, which verifies addresses with a mail
// server.
func serveWithMail(t *testing.T) (url string, server *mailtest.Server) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(nil)
	url = "http://" + web.Listener.Addr().String()
	server = mailtest.New(t, false)
	sender, err := mail.New(server.Config(url))
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := account.OpenAccounts(t.Context(), store, account.Config{
		Registration: account.RegistrationOpen, Password: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}, Mailer: sender,
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := account.OpenKeyring(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	used, err := usage.Open(t.Context(), store, usage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := dashboard.New(site.Config{
		Accounts: accounts, Keys: keys, Sessions: session.NewStore(store, nil), Usage: used, Failures: failures.New(),
		Networks:  func(context.Context) ([]site.Network, error) { return nil, nil },
		Unserved:  func(context.Context) []site.Unserved { return nil },
		Status:    func() bool { return true },
		Limits:    func() []site.LimitGroup { return nil },
		Allowance: func(*account.Key) account.Allowance { return account.Allowance{} },
		Call:      func(context.Context, site.Call, func(site.Answer)) {},
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = pages
	web.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sender.Run(ctx) }()
	t.Cleanup(func() {
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return url, server
}

// A new user signs up by a letter, forgets the password, sets another one, and changes the
// address. The pages are the same for addresses without an account.
func TestLetters(t *testing.T) {
	t.Parallel()
	chromium(t)
	url, server := serveWithMail(t)
	b := openTab(t, url, false)
	follow := func(to, subject string) {
		t.Helper()
		l := server.Next(t)
		if l.To != to || !strings.Contains(l.Header.Get("Subject"), subject) {
			t.Fatalf("letter to %s, expected %s: %+v", l.To, to, l)
		}
		b.open(strings.TrimPrefix(l.Link(), url))
	}
	folder := screenshots(t)
	look := func(name string) {
		t.Helper()
		b.lookAt(shot{"letters-" + name, func(*tab) {}}, folder)
	}

	const first, second = "somebody@example.org", "new@example.org"
	b.open("/signup")
	look("signup")
	b.enter("#email", first)
	b.follow("main form button.primary")
	b.sees("h1", "Check your e-mail")
	look("mailed")
	follow(first, "Create your account")
	look("confirm")
	b.enter("#password", "a stone on a stone")
	b.follow("main form button.primary")
	b.sees(".notice", "Welcome")
	b.open("/account")
	look("account")
	if text := b.text("main"); strings.Contains(text, "not verified") {
		t.Errorf("the address is not verified:\n%s", text)
	}

	b.enter("#new-email", second)
	b.enter("#email-password", "a stone on a stone")
	b.follow("form[action='/account/email'] button")
	follow(second, "Confirm your new")
	look("address")
	b.follow("main form button.primary")
	b.sees(".notice", "sign in with "+second)
	if l := server.Next(t); l.To != first || !strings.Contains(l.Text, second) {
		t.Errorf("the old address was not told: %+v", l)
	}

	stranger := openTab(t, url, false)
	stranger.open("/signin")
	stranger.follow("main a[href='/forgot']")
	stranger.enter("#email", "nobody@example.org")
	stranger.follow("main form button.primary")
	nobody := strings.ReplaceAll(stranger.text("main"), "nobody@example.org", second)
	stranger.open("/forgot")
	stranger.enter("#email", second)
	stranger.follow("main form button.primary")
	if text := stranger.text("main"); text != nobody {
		t.Errorf("the page tells whether there is an account:\n%s\n%s", text, nobody)
	}
	b = stranger
	follow(second, "Set a new password")
	look("reset")
	b.enter("#password", "another stone on a stone")
	b.follow("main form button.primary")
	b.sees(".notice", "password was set")
	time.Sleep(100 * time.Millisecond)
	if n := server.Received(); n != 4 {
		t.Errorf("%d letters, expected 4", n)
	}
}
