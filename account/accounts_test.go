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

// clock is a time that a test sets.
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

// quick are parameters with which hashing takes no time.
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

// fixture is accounts in a store of their own, with a clock.
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

// reopen closes everything and reads it again.
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

// where returns an address that has not been seen before by its number.
func where(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}) }

func (f *fixture) register(email, password string) (Account, Session) {
	f.Helper()
	a, s, err := f.accounts.Register(f.Context(), Registrant{Email: email, Password: password, Address: where(len(email))})
	if err != nil {
		f.Fatal(err)
	}
	return a, s
}

func TestRegisterSignInAndOut(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	made, session := f.register(" Somebody@Example.ORG ", secret)
	if made.Email != somebody || made.Role != RoleUser || !made.Password || !made.Created.Equal(f.Now()) {
		t.Errorf("the new account is %+v", made)
	}
	for _, when := range []string{"at once", "after opening again"} {
		if got, err := f.accounts.Resume(session); err != nil || got != made {
			t.Errorf("%s: the session is of %+v, %v", when, got, err)
		}
		got, _, err := f.accounts.SignIn(ctx, "SOMEBODY@example.org", secret, where(1))
		if err != nil || got != made {
			t.Errorf("%s: signed in as %+v, %v", when, got, err)
		}
		f.reopen()
	}
	for _, wrong := range []Session{"", "x", session + "0", Session(made.ID.String()), Session(ID{1}.String() + ".0")} {
		if _, err := f.accounts.Resume(wrong); !errors.Is(err, ErrSession) {
			t.Errorf("session %q: %v", wrong, err)
		}
	}
	if _, err := f.accounts.EndSessions(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("a session that was ended: %v", err)
	}
}

// Who does not know the password is not told why, whatever is wrong.
func TestSignInTellsNothing(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	f.register(somebody, secret)
	if _, _, err := f.accounts.Create(ctx, NewAccount{Email: "no.password@example.org"}); err != nil {
		t.Fatal(err)
	}
	disabled, _ := f.register("disabled@example.org", secret)
	if _, err := f.accounts.Disable(ctx, disabled.ID.String()); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ name, email, password string }{
		{"a wrong password", somebody, "wrong horse battery"},
		{"no password", somebody, ""},
		{"a password of any length", somebody, strings.Repeat("x", 1<<20)},
		{"no such account", "nobody@example.org", secret},
		{"no e-mail address", "nobody", secret},
		{"an account without a password", "no.password@example.org", ""},
		{"the same with one", "no.password@example.org", secret},
		{"a disabled account", "disabled@example.org", "wrong horse battery"},
	} {
		_, session, err := f.accounts.SignIn(ctx, c.email, c.password, where(i))
		if !errors.Is(err, ErrCredentials) || err.Error() != ErrCredentials.Error() || session != "" {
			t.Errorf("%s: %q, %v", c.name, session, err)
		}
	}
	if _, _, err := f.accounts.SignIn(ctx, "disabled@example.org", secret, where(99)); !errors.Is(err, ErrDisabled) {
		t.Errorf("a disabled account with its password: %v", err)
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	f.register(somebody, secret)
	f.register("other@example.org", secret)

	for i := range emailBurst { // from everywhere, so that no address is at its limit
		if _, _, err := f.accounts.SignIn(ctx, somebody, "wrong", where(i)); !errors.Is(err, ErrCredentials) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	var soon *TooSoon
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1000)); !errors.As(err, &soon) || soon.Wait != 10*time.Second {
		t.Errorf("one attempt more for an account: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, "other@example.org", secret, where(1000)); err != nil {
		t.Errorf("another account: %v", err)
	}
	f.pass(soon.Wait)
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1000)); err != nil {
		t.Errorf("after waiting: %v", err)
	}

	for i := range addressBurst { // for everybody, so that no account is at its limit
		if _, _, err := f.accounts.SignIn(ctx, fmt.Sprintf("n%d@example.org", i), "wrong", where(2000)); !errors.Is(err, ErrCredentials) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	for what, try := range map[string]func() error{
		"sign in": func() error {
			_, _, err := f.accounts.SignIn(ctx, "other@example.org", secret, where(2000))
			return err
		},
		"register": func() error {
			_, _, err := f.accounts.Register(ctx, Registrant{Email: "new@example.org", Password: secret, Address: where(2000)})
			return err
		},
		"set a password": func() error {
			_, _, err := f.accounts.SetPassword(ctx, "token", secret, where(2000))
			return err
		},
	} {
		if err := try(); !errors.As(err, &soon) || soon.Wait <= 0 {
			t.Errorf("%s, from an address with too many attempts: %v", what, err)
		}
	}
}

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
			t.Errorf("%s, with one that is none: %v", c.registration, err)
		}
	}
}

func TestRegisterSaysWhatIsWrong(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	f.register(somebody, secret)
	for i, c := range []struct {
		email, password string
		field           Field
		want            string
	}{
		{"nobody", secret, FieldEmail, "is no e-mail address"},
		{"Name <a@example.org>", secret, FieldEmail, "is no e-mail address"},
		{"a@example.org\nb@example.org", secret, FieldEmail, "is no e-mail address"},
		{strings.Repeat("a", 300) + "@example.org", secret, FieldEmail, "is no e-mail address"},
		{"SomeBody@example.org", secret, FieldEmail, "there is an account"},
		{"a@example.org", "tiny", FieldPassword, "at least 10 characters"},
		{"a@example.org", "ääääääää9", FieldPassword, "at least 10 characters"},
		{"a@example.org", strings.Repeat("long", 100), FieldPassword, "at most 256 bytes"},
		{"a@example.org", "A@example.ORG", FieldPassword, "is the e-mail address"},
		{"a@example.org", "1111111111", FieldPassword, "one character"},
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

// Many at once with one invitation, or one address, make one account.
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

func TestPasswordsChange(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	made, before := f.register(somebody, secret)
	if _, err := f.accounts.ChangePassword(ctx, made.ID, "wrong horse", "another horse", where(1)); !errors.Is(err, ErrCredentials) {
		t.Errorf("with a wrong password: %v", err)
	}
	if _, err := f.accounts.ChangePassword(ctx, made.ID, secret, "short", where(1)); err == nil {
		t.Error("a short password is accepted")
	}
	now, err := f.accounts.ChangePassword(ctx, made.ID, secret, "another horse", where(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Resume(before); !errors.Is(err, ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	if _, err := f.accounts.Resume(now); err != nil {
		t.Errorf("the session that it began: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1)); !errors.Is(err, ErrCredentials) {
		t.Errorf("the old password: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, "another horse", where(1)); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestResetsAreUsedOnce(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	made, session := f.register(somebody, secret)
	first, _, err := f.accounts.Reset(ctx, somebody)
	if err != nil {
		t.Fatal(err)
	}
	token, until, err := f.accounts.Reset(ctx, made.ID.String())
	if err != nil || until != f.Now().Add(ResetTime) {
		t.Fatal(until, err)
	}
	f.reopen()
	if got, err := f.accounts.Resetting(token); err != nil || got.ID != made.ID {
		t.Errorf("the token is of %+v, %v", got, err)
	}
	if _, err := f.accounts.Resume(session); err != nil {
		t.Errorf("the session is over before the password is set: %v", err)
	}
	for _, wrong := range []string{first, "", token[1:], token + "0", made.ID.String(), strings.Repeat("0", 48)} {
		if _, _, err := f.accounts.SetPassword(ctx, wrong, "another horse", where(1)); !errors.Is(err, ErrReset) {
			t.Errorf("token %q: %v", wrong, err)
		}
	}
	if _, _, err := f.accounts.SetPassword(ctx, token, "short", where(2)); err == nil {
		t.Error("a short password is accepted")
	}
	if _, _, err := f.accounts.SetPassword(ctx, token, "another horse", where(2)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.accounts.SetPassword(ctx, token, "a third horse", where(2)); !errors.Is(err, ErrReset) {
		t.Errorf("used twice: %v", err)
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, "another horse", where(3)); err != nil {
		t.Errorf("the new password: %v", err)
	}
	token, _, err = f.accounts.Reset(ctx, somebody)
	if err != nil {
		t.Fatal(err)
	}
	f.pass(ResetTime)
	if _, err := f.accounts.Resetting(token); !errors.Is(err, ErrReset) {
		t.Errorf("a token that has expired: %v", err)
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

// Parameters that were raised count from the next time on that somebody signs in.
func TestPasswordsAreHashedAnew(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	_, session := f.register(somebody, secret)
	before := f.accounts.withEmail(somebody).password
	f.config.Password = password.Params{MemoryKiB: 16, Passes: 2, Lanes: 1}
	f.reopen()
	if _, _, err := f.accounts.SignIn(t.Context(), somebody, secret, where(1)); err != nil {
		t.Fatal(err)
	}
	after := f.accounts.withEmail(somebody).password
	if before == after || !strings.Contains(after, "m=16,t=2,p=1") {
		t.Errorf("hashed as %s, and %s afterwards", before, after)
	}
	if _, err := f.accounts.Resume(session); err != nil {
		t.Errorf("that ended a session: %v", err)
	}
}
