package mail_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/mail"
	"ashlar/account/mail/mailtest"

	"github.com/emersion/go-smtp"
)

// run starts a sender that ends with the test.
func run(t *testing.T, c mail.Config) *mail.Sender {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	s, err := mail.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func queue(t *testing.T, s *mail.Sender, l *account.Letter) {
	t.Helper()
	if err := s.Queue(func(context.Context) (*account.Letter, error) { return l, nil }); err != nil {
		t.Fatal(err)
	}
}

// Letters arrive over TLS, with authentication, as plain text with the link on a line of its
// own.
func TestLettersArrive(t *testing.T) {
	for name, implicit := range map[string]bool{"STARTTLS": false, "implicit TLS": true} {
		server := mailtest.New(t, implicit)
		c := server.Config("https://rpc.example.org")
		if implicit {
			c.TLS = mail.Implicit
		}
		s := run(t, c)
		token := strings.Repeat("0123456789abcdef", 3)
		for kind, want := range map[account.LetterKind]struct{ subject, link, text string }{
			account.LetterRegister: {"Create your account at rpc.example.org", "/signup/confirm?token=" + token, "valid for 24 hours"},
			account.LetterHasOne:   {"Your account at rpc.example.org", "/signin", "You already have one"},
			account.LetterReset:    {"Set a new password at rpc.example.org", "/reset?token=" + token, "valid for one hour"},
			account.LetterChange:   {"Confirm your new e-mail address at rpc.example.org", "/account/confirm?token=" + token, "valid for 24 hours"},
			account.LetterTaken:    {"Your account at rpc.example.org", "/signin", "was refused"},
			account.LetterChanged:  {"The e-mail address of your account at rpc.example.org has changed", "/signin", "new@example.org"},
		} {
			l := &account.Letter{Kind: kind, To: "somebody@example.org", Email: "new@example.org"}
			if strings.Contains(want.link, "token") {
				l.Token, l.Valid = token, 24*time.Hour
			}
			if kind == account.LetterReset {
				l.Valid = time.Hour
			}
			queue(t, s, l)
			got := server.Next(t)
			if got.To != l.To || got.From != "noreply@mail.test" || got.Header.Get("Subject") != want.subject ||
				got.Link() != "https://rpc.example.org"+want.link || !strings.Contains(got.Text, want.text) {
				t.Errorf("%s: %+v", name, got)
			}
			if kind := got.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; charset=UTF-8") || got.Header.Get("Auto-Submitted") != "auto-generated" {
				t.Errorf("%s: content type %q, headers %v", name, kind, got.Header)
			}
			for line := range strings.Lines(got.Text) {
				if len(line) > 100 && !strings.Contains(line, "token=") {
					t.Errorf("a long line: %q", line)
				}
			}
		}
		await(t, func() bool { sent, failed := s.Counts(); return sent == 6 && failed == 0 })
	}
}

// A letter that a server refuses for good is given up, and the next one is sent. Nothing is
// sent to a server whose certificate is not trusted, or with a wrong password.
func TestRefusedLetters(t *testing.T) {
	server := mailtest.New(t, false)
	gaveUp := func(s *mail.Sender) func() bool {
		return func() bool { _, failed := s.Counts(); return failed == 1 }
	}
	failing := func(s *mail.Sender) func() bool {
		return func() bool { _, err := s.Problem(); return err != nil }
	}
	letter := &account.Letter{Kind: account.LetterHasOne, To: "somebody@example.org"}

	s := run(t, server.Config("https://rpc.example.org"))
	server.Refuse(&smtp.SMTPError{Code: 550, Message: "no such user"})
	queue(t, s, letter)
	await(t, gaveUp(s))
	server.Refuse(nil)
	queue(t, s, letter)
	server.Next(t)
	await(t, func() bool { return !failing(s)() })

	wrong := server.Config("https://rpc.example.org")
	wrong.Password = "guessed"
	s = run(t, wrong)
	queue(t, s, letter)
	await(t, failing(s))

	untrusted := server.Config("https://rpc.example.org")
	untrusted.Roots = nil
	s = run(t, untrusted)
	queue(t, s, letter)
	await(t, failing(s))
	if n := server.Received(); n != 1 {
		t.Errorf("%d letters arrived, expected 1", n)
	}
}

// An address that does not exist is no problem of the service: anybody can type one. Its letter counts as dropped.
func TestUnknownAddress(t *testing.T) {
	server := mailtest.New(t, false)
	server.Unknown("nobody@example.org")
	s := run(t, server.Config("https://rpc.example.org"))
	queue(t, s, &account.Letter{Kind: account.LetterHasOne, To: "nobody@example.org"})
	await(t, func() bool { _, failed := s.Counts(); return failed == 1 })
	if _, err := s.Problem(); err != nil {
		t.Errorf("the service says that it sends no e-mails: %v", err)
	}
}

// A letter that a server refuses for the moment is sent again.
func TestLettersAreSentAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the second attempt")
	}
	server := mailtest.New(t, false)
	s := run(t, server.Config("https://rpc.example.org"))
	server.Refuse(&smtp.SMTPError{Code: 451, Message: "try again later"})
	queue(t, s, &account.Letter{Kind: account.LetterHasOne, To: "somebody@example.org"})
	await(t, func() bool { _, err := s.Problem(); return err != nil })
	server.Refuse(nil)
	server.Next(t)
}

func await(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// The queue is bounded.
func TestFullQueue(t *testing.T) {
	s, err := mail.New(mailtest.New(t, false).Config("https://rpc.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	var full error
	for n := 0; n < 2000 && full == nil; n++ {
		full = s.Queue(func(context.Context) (*account.Letter, error) { return nil, nil })
	}
	if !errors.Is(full, account.ErrLetters) {
		t.Errorf("error %v, expected %v", full, account.ErrLetters)
	}
}

func TestConfig(t *testing.T) {
	good := mail.Config{Server: "smtp.example.org:587", From: "Ashlar <noreply@example.org>", Link: "https://rpc.example.org"}
	for want, change := range map[string]func(*mail.Config){
		"":                           func(*mail.Config) {},
		"invalid server":             func(c *mail.Config) { c.Server = "smtp.example.org" },
		"invalid sender":             func(c *mail.Config) { c.From = "Ashlar" },
		"invalid link":               func(c *mail.Config) { c.Link = "rpc.example.org" },
		"unknown encryption":         func(c *mail.Config) { c.TLS = "ssl" },
		"expected a server on this ": func(c *mail.Config) { c.TLS = mail.None },
	} {
		c := good
		change(&c)
		_, err := mail.New(c)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
