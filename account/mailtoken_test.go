package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// outbox is a Mailer that composes letters when a test asks for them.
type outbox []func(context.Context) (*Letter, error)

func (o *outbox) Queue(compose func(context.Context) (*Letter, error)) error {
	*o = append(*o, compose)
	return nil
}

// next composes the next letter; nil if there is none.
func (o *outbox) next(t *testing.T) *Letter {
	t.Helper()
	if len(*o) == 0 {
		t.Fatal("nothing is queued")
	}
	compose := (*o)[0]
	*o = (*o)[1:]
	l, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newMailFixture(t *testing.T, registration Registration) (*fixture, *outbox) {
	sent := new(outbox)
	return newFixture(t, Config{Registration: registration, Mailer: sent}), sent
}

// ask requests an account for an address.
func (f *fixture) ask(email, invitation string, n int) error {
	return f.accounts.RequestRegistration(f.Context(), Registrant{Email: email, Invitation: invitation, Address: where(n)})
}

// An account is created by the one use of a token from a letter, within a day.
func TestRegistrationByLetter(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	ctx := t.Context()
	if _, _, err := f.accounts.Register(ctx, Registrant{Email: somebody, Password: secret, Address: where(1)}); !errors.Is(err, ErrNoLetter) {
		t.Errorf("without a token: %v", err)
	}
	if err := f.ask("Somebody@example.org", "", 1); err != nil {
		t.Fatal(err)
	}
	l := sent.next(t)
	if l.Kind != LetterRegister || l.To != somebody || l.Valid != registerTime {
		t.Fatalf("%+v", l)
	}
	if _, err := f.accounts.Find(somebody); !errors.Is(err, ErrNoAccount) {
		t.Errorf("there is an account before the address is verified: %v", err)
	}
	f.reopen()
	if email, err := f.accounts.Registering(l.Token); err != nil || email != somebody {
		t.Errorf("%s, %v", email, err)
	}
	a, _, err := f.accounts.Register(ctx, Registrant{Token: l.Token, Email: "another@example.org", Password: secret, Address: where(2)})
	if err != nil || a.Email != somebody || a.Verified.IsZero() {
		t.Fatalf("%+v, %v", a, err)
	}
	for range 2 {
		if _, _, err := f.accounts.Register(ctx, Registrant{Token: l.Token, Password: secret, Address: where(3)}); !errors.Is(err, ErrNoLetter) {
			t.Errorf("used a second time: %v", err)
		}
		f.reopen()
	}
	if err := f.ask("late@example.org", "", 4); err != nil {
		t.Fatal(err)
	}
	late := sent.next(t)
	f.pass(registerTime)
	if _, _, err := f.accounts.Register(ctx, Registrant{Token: late.Token, Password: secret, Address: where(5)}); !errors.Is(err, ErrNoLetter) {
		t.Errorf("used after a day: %v", err)
	}
	f.reopen()
	if a, err := f.accounts.Find(somebody); err != nil || a.Verified.IsZero() {
		t.Errorf("opened again: %+v, %v", a, err)
	}
}

// A client that tries invitations is told that its attempts are limited, and nothing else.
func TestInvitationsAreTried(t *testing.T) {
	f, _ := newMailFixture(t, RegistrationInvited)
	var soon *TooSoon
	for i := range addressBurst + 2 {
		err := f.ask(somebody, fmt.Sprint("made up ", i), 1)
		if limited := i >= addressBurst; errors.As(err, &soon) != limited || errors.Is(err, ErrNoInvitation) == limited {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
}

// One client cannot use up the letters of all others, however many addresses it writes to.
func TestLettersOfOneClient(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	letters := 0
	for i := range 12 * 60 * 60 / 2 { // as fast as attempts are allowed, for half a day
		if err := f.ask(fmt.Sprintf("a%d@example.org", i), "", 1); err == nil {
			letters++
		}
		f.pass(2 * time.Second)
	}
	if most := lettersOfClient + 12*60; letters > most || letters < most-1 {
		t.Errorf("one client got %d letters in half a day, expected %d", letters, most)
	}
	if err := f.ask(somebody, "", 2); err != nil {
		t.Errorf("another client: %v", err)
	}
	*sent = (*sent)[len(*sent)-1:]
	if l := sent.next(t); l.To != somebody || l.Token == "" {
		t.Errorf("the letter of the other client is %+v", l)
	}
}

// Invitations work with letters, and are used up by the account, not by the letter.
func TestInvitationsByLetter(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationInvited)
	ctx := t.Context()
	token, _, err := f.accounts.Invite(ctx, NewInvitation{Role: RoleOperator, Email: "boss@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	var wrong *Invalid
	if err := f.ask(somebody, "", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("without an invitation: %v", err)
	}
	if err := f.ask(somebody, token, 1); !errors.As(err, &wrong) {
		t.Errorf("for another address: %v", err)
	}
	var letters []*Letter
	for range 2 {
		if err := f.ask("boss@example.org", token, 1); err != nil {
			t.Fatal(err)
		}
		letters = append(letters, sent.next(t))
	}
	a, _, err := f.accounts.Register(ctx, Registrant{Token: letters[1].Token, Password: secret, Address: where(2)})
	if err != nil || a.Role != RoleOperator {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, _, err := f.accounts.Register(ctx, Registrant{Token: letters[0].Token, Password: secret, Address: where(3)}); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("a second account with the invitation: %v", err)
	}
}

// A client that asks for letters cannot tell which addresses have accounts: neither by the
// result, nor by what is done before it, nor by the limits.
func TestLettersTellNothing(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	token, _, err := f.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.accounts.SetPassword(t.Context(), token, secret, where(0)); err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func(email string, n int) error{
		"register": func(email string, n int) error { return f.ask(email, "", n) },
		"reset":    func(email string, n int) error { return f.accounts.RequestReset(t.Context(), email, where(n)) },
	} {
		f.pass(24 * time.Hour)
		for n := range 5 {
			before := f.written()
			known, unknown := ask(somebody, 1), ask("nobody@example.org", 2)
			if (known == nil) != (unknown == nil) || known != nil && known.Error() != unknown.Error() {
				t.Errorf("%s, request %d: %v, without an account %v", what, n, known, unknown)
			}
			if (known == nil) != (n < lettersOfOne) {
				t.Errorf("%s, request %d: %v", what, n, known)
			}
			if f.written() != before {
				t.Errorf("%s writes before it answers", what)
			}
		}
		for range 2 * lettersOfOne {
			if l := sent.next(t); l != nil && l.To == somebody && l.Kind == LetterRegister || l != nil && l.To == "nobody@example.org" && l.Kind != LetterRegister {
				t.Errorf("%s: letter %+v", what, l)
			}
		}
	}
}

// written returns how many rows were written for accounts and letters.
func (f *fixture) written() (n int) {
	f.Helper()
	for row, err := range f.store.Walk(f.Context(), accountRevisions, 0) {
		if err != nil || row.Partition == nil {
			f.Fatal(err)
		}
		n++
	}
	return n + len(f.accounts.mailTokens)
}

// The letters to one address are limited, however many clients ask for them; a stranger
// cannot use up those of a user with one address.
func TestLettersAreLimited(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	failed := 0
	for n := range 2 * lettersOfAllBurst {
		var soon *TooSoon
		if err := f.accounts.RequestReset(t.Context(), somebody, where(n+1)); errors.As(err, &soon) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if failed != lettersOfAllBurst || len(*sent) != lettersOfAllBurst {
		t.Errorf("%d refused and %d queued, expected %d of both", failed, len(*sent), lettersOfAllBurst)
	}
}

// A password is set by the one use of a token from a letter, within an hour. It verifies the
// address.
func TestResetByLetter(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	ctx := t.Context()
	if _, _, err := f.accounts.Create(ctx, NewAccount{Email: somebody}); err != nil {
		t.Fatal(err)
	}
	reset := func() *Letter {
		t.Helper()
		f.pass(time.Hour)
		if err := f.accounts.RequestReset(ctx, somebody, where(1)); err != nil {
			t.Fatal(err)
		}
		return sent.next(t)
	}
	l := reset()
	if l.Kind != LetterReset || l.To != somebody || l.Valid != mailedReset {
		t.Fatalf("%+v", l)
	}
	f.reopen()
	a, _, err := f.accounts.SetPassword(ctx, l.Token, secret, where(1))
	if err != nil || a.Verified.IsZero() {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, _, err := f.accounts.SetPassword(ctx, l.Token, secret, where(1)); !errors.Is(err, ErrReset) {
		t.Errorf("used a second time: %v", err)
	}
	late := reset()
	f.pass(mailedReset)
	if _, _, err := f.accounts.SetPassword(ctx, late.Token, secret, where(1)); !errors.Is(err, ErrReset) {
		t.Errorf("used after an hour: %v", err)
	}
	if _, err := f.accounts.Disable(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if l := reset(); l != nil {
		t.Errorf("a disabled account: %+v", l)
	}
}

// An address changes once the new one is confirmed; the old one is notified, and is free again.
func TestChangeOfAddress(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	ctx := t.Context()
	f.config.Mailer = nil
	f.reopen()
	mine, session := f.register(somebody, secret)
	f.register("other@example.org", secret)
	f.config.Mailer = sent
	f.reopen()
	const fresh = "new@example.org"
	change := func(password, email string) error {
		f.pass(time.Hour)
		return f.accounts.RequestChange(ctx, mine.ID, password, email, where(1))
	}
	if err := change("wrong", fresh); !errors.Is(err, ErrCredentials) {
		t.Errorf("with a wrong password: %v", err)
	}
	var wrong *Invalid
	if err := change(secret, somebody); !errors.As(err, &wrong) {
		t.Errorf("to the same address: %v", err)
	}
	if err := change(secret, "other@example.org"); err != nil {
		t.Errorf("to the address of another account: %v", err)
	} else if l := sent.next(t); l.Kind != LetterTaken || l.To != "other@example.org" || l.Token != "" {
		t.Errorf("%+v", l)
	}
	if err := change(secret, fresh); err != nil {
		t.Fatal(err)
	}
	l := sent.next(t)
	if l.Kind != LetterChange || l.To != fresh {
		t.Fatalf("%+v", l)
	}
	if _, _, err := f.accounts.Register(ctx, Registrant{Token: l.Token, Password: secret, Address: where(2)}); !errors.Is(err, ErrNoLetter) {
		t.Errorf("registered with it: %v", err)
	}
	f.reopen()
	if a, email, err := f.accounts.Changing(l.Token); err != nil || a.ID != mine.ID || email != fresh {
		t.Errorf("%+v, %s, %v", a, email, err)
	}
	a, err := f.accounts.ConfirmChange(ctx, l.Token, where(2))
	if err != nil || a.Email != fresh || a.Verified.IsZero() {
		t.Fatalf("%+v, %v", a, err)
	}
	if l := sent.next(t); l.Kind != LetterChanged || l.To != somebody || l.Email != fresh {
		t.Errorf("%+v", l)
	}
	for _, when := range []string{"at once", "after opening again"} {
		if _, err := f.accounts.ConfirmChange(ctx, l.Token, where(3)); !errors.Is(err, ErrNoLetter) {
			t.Errorf("%s: used a second time: %v", when, err)
		}
		if _, _, err := f.accounts.SignIn(ctx, fresh, secret, where(4)); err != nil {
			t.Errorf("%s: signed in with the new address: %v", when, err)
		}
		if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(5)); !errors.Is(err, ErrCredentials) {
			t.Errorf("%s: signed in with the old address: %v", when, err)
		}
		if _, err := f.accounts.Resume(session); err != nil {
			t.Errorf("%s: the session: %v", when, err)
		}
		f.reopen()
	}
	if _, _, err := f.accounts.Create(ctx, NewAccount{Email: somebody}); err != nil {
		t.Errorf("the old address is not free: %v", err)
	}
}

// fullOutbox is a Mailer with too many letters waiting.
type fullOutbox struct{}

func (fullOutbox) Queue(func(context.Context) (*Letter, error)) error { return ErrLetters }

// A confirmed address is changed even if the old address cannot be notified.
func TestChangeOfAddressWithoutNotice(t *testing.T) {
	for name, mailer := range map[string]Mailer{"mail was turned off meanwhile": nil, "too many letters are waiting": fullOutbox{}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Config{Registration: RegistrationOpen})
			mine, _ := f.register(somebody, secret)
			sent := new(outbox)
			f.config.Mailer = sent
			f.reopen()
			const fresh = "new@example.org"
			if err := f.accounts.RequestChange(t.Context(), mine.ID, secret, fresh, where(1)); err != nil {
				t.Fatal(err)
			}
			l := sent.next(t)
			f.config.Mailer = mailer
			f.reopen()
			if a, err := f.accounts.ConfirmChange(t.Context(), l.Token, where(2)); err != nil || a.Email != fresh {
				t.Errorf("%+v, %v", a, err)
			}
			if _, err := f.accounts.Find(fresh); err != nil {
				t.Error(err)
			}
		})
	}
}

// The store holds the hashes of tokens only, and no token after its use or its time.
func TestMailTokensAtRest(t *testing.T) {
	f, sent := newMailFixture(t, RegistrationOpen)
	for n, email := range []string{"a@example.org", "b@example.org"} {
		if err := f.ask(email, "", n); err != nil {
			t.Fatal(err)
		}
	}
	used := sent.next(t)
	sent.next(t)
	stored := func() (n int) {
		t.Helper()
		for row, err := range f.store.Walk(t.Context(), mailTokens, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if text := string(row.Partition) + string(row.Value); strings.Contains(text, used.Token) {
				t.Error("a token is stored")
			}
			n++
		}
		return n
	}
	if n := stored(); n != 2 {
		t.Errorf("%d rows, expected 2", n)
	}
	if _, _, err := f.accounts.Register(t.Context(), Registrant{Token: used.Token, Password: secret, Address: netip.Addr{}}); err != nil {
		t.Fatal(err)
	}
	f.pass(registerTime)
	if err := f.ask("c@example.org", "", 3); err != nil {
		t.Fatal(err)
	}
	sent.next(t)
	if n := stored(); n != 1 {
		t.Errorf("%d rows after a use and a day, expected 1", n)
	}
}
