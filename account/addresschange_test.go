package account

import (
	"errors"
	"testing"
	"time"
)

// Whatever ends the sessions of an account ends changes of its address that were not confirmed: a
// thief of the password may have requested them.
func TestUnconfirmedChangeEndsWithSessions(t *testing.T) {
	for name, end := range map[string]func(*fixture, ID) error{
		"change of the password": func(f *fixture, id ID) error {
			_, err := f.accounts.ChangePassword(f.Context(), id, secret, "another good passphrase", where(2))
			return err
		},
		"new password by a link": func(f *fixture, id ID) error {
			token, _, err := f.accounts.Reset(f.Context(), id.String())
			if err == nil {
				_, _, err = f.accounts.SetPassword(f.Context(), token, "another good passphrase", where(2))
			}
			return err
		},
		"end of the sessions": func(f *fixture, id ID) error {
			h, err := f.accounts.holder(id)
			if err == nil {
				_, _, err = f.accounts.EndSessions(f.Context(), h.load().session())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Config{Registration: RegistrationOpen})
			mine, _ := f.register(somebody, secret)
			sent := new(outbox)
			f.config.Mailer = sent
			f.reopen()
			var tokens []string
			for n, email := range []string{"thief@example.org", "second@example.org"} {
				if err := f.accounts.RequestChange(t.Context(), mine.ID, secret, email, where(n)); err != nil {
					t.Fatal(err)
				}
			}
			tokens = append(tokens, sent.next(t).Token)
			if err := end(f, mine.ID); err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, sent.next(t).Token) // composed too late
			for _, when := range []string{"at once", "after opening again"} {
				for _, token := range tokens {
					if _, _, err := f.accounts.Changing(token); !errors.Is(err, ErrNoLetter) {
						t.Errorf("%s: the token is valid: %v", when, err)
					}
					if a, err := f.accounts.ConfirmChange(t.Context(), token, where(3)); !errors.Is(err, ErrNoLetter) {
						t.Errorf("%s: the address has changed to %s, %v", when, a.Email, err)
					}
				}
				f.reopen()
			}
		})
	}
}

// Once an account has another address, a change that was requested before is over: the letter may have gone to a
// misspelled address, whose owner would get the account.
func TestUnconfirmedChangeEndsWithAnother(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	mine, _ := f.register(somebody, secret)
	sent := new(outbox)
	f.config.Mailer = sent
	f.reopen()
	request := func(n int, email string) (token string) {
		t.Helper()
		f.pass(time.Minute)
		if err := f.accounts.RequestChange(t.Context(), mine.ID, secret, email, where(n)); err != nil {
			t.Fatal(err)
		}
		return sent.next(t).Token
	}
	misspelled, right := request(1, "nwe@example.org"), request(2, "new@example.org")
	if err := f.accounts.RequestChange(t.Context(), mine.ID, secret, "enw@example.org", where(2)); err != nil { // composed later
		t.Fatal(err)
	}
	f.pass(time.Minute)
	if a, err := f.accounts.ConfirmChange(t.Context(), right, where(3)); err != nil || a.Email != "new@example.org" {
		t.Fatalf("%+v, %v", a, err)
	}
	if late := sent.next(t); late != nil {
		t.Errorf("a letter to %s was composed after another address was confirmed", late.To)
	}
	sent.next(t) // which notifies the old address
	for _, when := range []string{"at once", "after opening again"} {
		if _, email, err := f.accounts.Changing(misspelled); !errors.Is(err, ErrNoLetter) {
			t.Errorf("%s: the earlier token is valid for %s, %v", when, email, err)
		}
		if a, err := f.accounts.ConfirmChange(t.Context(), misspelled, where(4)); !errors.Is(err, ErrNoLetter) {
			t.Errorf("%s: the address has changed to %s, %v", when, a.Email, err)
		}
		f.reopen()
	}
	later := request(5, "third@example.org")
	f.pass(time.Minute)
	if a, err := f.accounts.ConfirmChange(t.Context(), later, where(6)); err != nil || a.Email != "third@example.org" {
		t.Errorf("a later change: %+v, %v", a, err)
	}
}

// A link to set a password that was sent to the old address is not valid for the new one, whose
// owner may have lost the old mailbox to somebody else.
func TestMailedResetEndsWithAddress(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	mine, _ := f.register(somebody, secret)
	sent := new(outbox)
	f.config.Mailer = sent
	f.reopen()
	if err := f.accounts.RequestChange(t.Context(), mine.ID, secret, "new@example.org", where(1)); err != nil {
		t.Fatal(err)
	}
	change := sent.next(t)
	if err := f.accounts.RequestReset(t.Context(), somebody, where(2)); err != nil {
		t.Fatal(err)
	}
	reset := sent.next(t)
	if _, err := f.accounts.ConfirmChange(t.Context(), change.Token, where(3)); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after opening again"} {
		if _, _, err := f.accounts.SetPassword(t.Context(), reset.Token, "another good passphrase", where(4)); !errors.Is(err, ErrReset) {
			t.Errorf("%s: a link sent to the old address sets a password: %v", when, err)
		}
		f.reopen()
	}
	token, _, err := f.accounts.Reset(t.Context(), "new@example.org")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.accounts.SetPassword(t.Context(), token, "another good passphrase", where(5)); err != nil {
		t.Errorf("a link from an operator: %v", err)
	}
}
