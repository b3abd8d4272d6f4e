package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/account/password"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// quick returns parameters that make hashing fast.
func quick() password.Params { return password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1} }

func openAccounts(t testing.TB, store kv.Store, config Config) *Accounts {
	t.Helper()
	if config.Password == (password.Params{}) {
		config.Password = quick()
	}
	a, err := OpenAccounts(context.Background(), store, config)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fixture is a store of accounts with a clock.
type fixture struct {
	*testing.T
	*clock
	fs       *vfs.MemFS
	store    kv.Store
	config   Config
	accounts *Accounts
	keys     *Keyring
}

func newFixture(t *testing.T, config Config) *fixture {
	f := &fixture{T: t, clock: newClock(), fs: vfs.NewMem(), config: config}
	f.config.Now = f.Now
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func (f *fixture) open() {
	f.Helper()
	f.store = openStore(f, f.fs)
	f.accounts = openAccounts(f, f.store, f.config)
	var err error
	if f.keys, err = OpenKeyring(f.Context(), f.accounts); err != nil {
		f.Fatal(err)
	}
}

// reopen closes everything and opens the store again.
func (f *fixture) reopen() {
	f.Helper()
	if err := f.store.Close(); err != nil {
		f.Fatal(err)
	}
	f.open()
}

const (
	somebody = "somebody@example.org"
	secret   = "correct horse battery"
)

// where returns a distinct address for each n.
func where(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}) }

func (f *fixture) register(email, password string) (Account, Session) {
	f.Helper()
	a, s, err := f.accounts.Register(f.Context(), Registrant{Email: email, Password: password, Address: where(len(email))})
	if err != nil {
		f.Fatal(err)
	}
	return a, s
}

// TestRegistration: the kinds of registration admit those with and without an invitation.
func TestRegistration(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		registration  Registration
		without, with error
	}{
		{RegistrationOpen, nil, nil},
		{RegistrationInvited, ErrClosed, nil},
		{RegistrationClosed, ErrClosed, ErrClosed},
	} {
		f := newFixture(t, Config{Registration: c.registration})
		token, _, err := f.accounts.Invite(ctx, NewInvitation{})
		if err != nil {
			t.Fatal(err)
		}
		r := Registrant{Email: somebody, Password: secret}
		if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, c.without) {
			t.Errorf("%s, without an invitation: %v", c.registration, err)
		}
		r.Email, r.Invitation = "other@example.org", token
		if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, c.with) {
			t.Errorf("%s, with one: %v", c.registration, err)
		}
		r.Email, r.Invitation = "third@example.org", strings.Repeat("0", 32)
		if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, ErrNoInvitation) && !errors.Is(err, ErrClosed) {
			t.Errorf("%s, with an unknown one: %v", c.registration, err)
		}
	}
}

func TestRegisterRejectsInvalidInput(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	f.register(somebody, secret)
	for i, c := range []struct {
		email, password string
		field           Field
		want            string
	}{
		{"nobody", secret, FieldEmail, "invalid e-mail address"},
		{"Name <a@example.org>", secret, FieldEmail, "invalid e-mail address"},
		{"a@example.org\nb@example.org", secret, FieldEmail, "invalid e-mail address"},
		{"a\u009b31mb@example.org", secret, FieldEmail, "invalid e-mail address"},
		{"a\u202eb@example.org", secret, FieldEmail, "invalid e-mail address"},
		{"a@exa\u009bmple.org", secret, FieldEmail, "invalid e-mail address"},
		{strings.Repeat("a", 300) + "@example.org", secret, FieldEmail, "invalid e-mail address"},
		{"SomeBody@example.org", secret, FieldEmail, "there is an account"},
		{"a@example.org", "tiny", FieldPassword, "at least 10 characters"},
		{"a@example.org", "ääääääää9", FieldPassword, "at least 10 characters"},
		{"a@example.org", strings.Repeat("long", 100), FieldPassword, "at most 256 bytes"},
		{"a@example.org", "A@example.ORG", FieldPassword, "is the e-mail address"},
		{"a@example.org", "1111111111", FieldPassword, "easy to guess"},
		{"a@example.org", "1234567890", FieldPassword, "easy to guess"},
		{"a@example.org", "password123", FieldPassword, "easy to guess"},
		{"jane.doe@example.org", "Jane.Doe2026", FieldPassword, "easy to guess"},
		{"a@stonemason.example", "stonemason.example1", FieldPassword, "easy to guess"},
		{"a@example.org", "not UTF-8 \xff", FieldPassword, "not UTF-8"},
	} {
		_, _, err := f.accounts.Register(t.Context(), Registrant{Email: c.email, Password: c.password, Address: where(i)})
		var wrong *Invalid
		if !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Problem, c.want) {
			t.Errorf("%q, %q: %v; expected %q about %s", c.email, c.password, err, c.want, c.field)
		}
		if err != nil && strings.Contains(err.Error(), c.password) && c.password != c.email {
			t.Errorf("the error repeats the password: %v", err)
		}
	}
}

func TestInvitationsMakeOneAccount(t *testing.T) {
	f := newFixture(t, Config{})
	ctx := t.Context()
	token, invitation, err := f.accounts.Invite(ctx, NewInvitation{Role: RoleOperator, Email: "Boss@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	f.reopen()
	if got, err := f.accounts.Invitation(token); err != nil || got != invitation || got.Email != "boss@example.org" {
		t.Errorf("the invitation is %+v, %v; expected %+v", got, err, invitation)
	}
	r := Registrant{Email: somebody, Password: secret, Invitation: token}
	var wrong *Invalid
	if _, _, err := f.accounts.Register(ctx, r); !errors.As(err, &wrong) || wrong.Field != FieldEmail {
		t.Errorf("for another address: %v", err)
	}
	r.Email = "boss@example.org"
	made, _, err := f.accounts.Register(ctx, r)
	if err != nil || made.Role != RoleOperator {
		t.Fatalf("%+v, %v", made, err)
	}
	for _, when := range []string{"at once", "after opening again"} {
		r.Email = "second@example.org"
		if _, _, err := f.accounts.Register(ctx, r); !errors.Is(err, ErrNoInvitation) {
			t.Errorf("used a second time, %s: %v", when, err)
		}
		if list, err := f.accounts.Invitations(ctx); err != nil || len(list) != 1 || list[0].UsedBy != made.ID {
			t.Errorf("%s: invitations %+v, %v", when, list, err)
		}
		f.reopen()
	}
}

func TestInvitationsEnd(t *testing.T) {
	f := newFixture(t, Config{})
	ctx := t.Context()
	invite := func(n NewInvitation) (string, Invitation) {
		t.Helper()
		token, i, err := f.accounts.Invite(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		return token, i
	}
	expiring, _ := invite(NewInvitation{Valid: time.Hour})
	withdrawn, i := invite(NewInvitation{})
	if _, err := f.accounts.Withdraw(ctx, i.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Withdraw(ctx, i.ID); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("withdrawn twice: %v", err)
	}
	if _, err := f.accounts.Invitation(expiring); err != nil {
		t.Errorf("before it expires: %v", err)
	}
	f.pass(time.Hour)
	for _, token := range []string{expiring, withdrawn, "", strings.Repeat("0", 32)} {
		if _, err := f.accounts.Invitation(token); !errors.Is(err, ErrNoInvitation) {
			t.Errorf("invitation %q: %v", token, err)
		}
	}
	for _, bad := range []NewInvitation{{Role: "king"}, {Email: "x"}, {Valid: time.Second}, {Valid: 1000 * 24 * time.Hour}} {
		if _, _, err := f.accounts.Invite(ctx, bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// Concurrent registrations with one invitation or one e-mail address create one account.
func TestRegisterAtOnce(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	token, _, err := f.accounts.Invite(t.Context(), NewInvitation{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	invited, named := 0, 0 // guarded by mu
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			_, _, err := f.accounts.Register(t.Context(), Registrant{Email: fmt.Sprintf("n%d@example.org", i), Password: secret, Invitation: token, Address: where(i)})
			_, _, err2 := f.accounts.Register(t.Context(), Registrant{Email: somebody, Password: secret, Address: where(i)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				invited++
			}
			if err2 == nil {
				named++
			}
		})
	}
	group.Wait()
	if list, err := f.accounts.List(t.Context()); err != nil || invited != 1 || named != 1 || len(list) != 2 {
		t.Errorf("%d with the invitation, %d with the address, %d accounts, %v", invited, named, len(list), err)
	}
}

func TestOperatorsMakeAccounts(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationClosed})
	ctx := t.Context()
	token, made, err := f.accounts.Create(ctx, NewAccount{Email: somebody, Role: RoleOperator, Limits: Limits{PerSecond: 5}})
	if err != nil || made.Password || made.Role != RoleOperator || made.Limits.PerSecond != 5 {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, _, err := f.accounts.SetPassword(ctx, token, secret, where(1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1)); err != nil {
		t.Error(err)
	}
	if _, err := f.accounts.SetRole(ctx, somebody, "king"); err == nil {
		t.Error("any role is accepted")
	}
	if _, err := f.accounts.SetRole(ctx, somebody, RoleUser); err != nil {
		t.Error(err)
	}
	want, err := f.accounts.SetLimits(ctx, somebody, Limits{PerDay: 7})
	if err != nil {
		t.Error(err)
	}
	f.reopen()
	if got, err := f.accounts.Find(somebody); err != nil || got != want || got.Role != RoleUser || got.Limits != (Limits{PerDay: 7}) {
		t.Errorf("%+v, %v; expected %+v", got, err, want)
	}
	for _, none := range []string{"nobody@example.org", "", "x", ID{1}.String()} {
		if _, err := f.accounts.Find(none); !errors.Is(err, ErrNoAccount) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestReload(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationClosed})
	f.accounts.Reload(Config{Registration: RegistrationOpen, Keys: 1})
	made, _ := f.register(somebody, secret)
	f.key(f.keys.Of(made.ID), NewKey{})
	if _, err := f.keys.Of(made.ID).Create(t.Context(), NewKey{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("a key too many: %v", err)
	}
}
