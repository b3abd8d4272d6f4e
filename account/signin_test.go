package account

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ashlar/account/password"
)

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
	_, other, err := f.accounts.EndSessions(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("a session that was ended: %v", err)
	}
	if _, _, err := f.accounts.EndSessions(ctx, session); !errors.Is(err, ErrSession) {
		t.Errorf("a session that was ended ends others: %v", err)
	}
	if got, err := f.accounts.Resume(other); err != nil || got != made {
		t.Errorf("the session that goes on is of %+v, %v", got, err)
	}
}

func TestSignInRevealsNothing(t *testing.T) {
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

// within returns the address of a client in an IPv6 network.
func within(network string, n int) netip.Addr {
	a := netip.MustParseAddr(network).As16()
	a[14], a[15] = byte(n>>8), byte(n)
	return netip.AddrFrom16(a)
}

func TestAttemptsAreCounted(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	f.register(somebody, secret)
	f.register("other@example.org", secret)

	for i := range guesserBurst {
		if _, _, err := f.accounts.SignIn(ctx, somebody, "wrong", within("2001:db8::", i)); !errors.Is(err, ErrCredentials) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	var soon *TooSoon
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, within("2001:db8::", 1000)); !errors.As(err, &soon) || soon.Wait != 10*time.Second {
		t.Errorf("one attempt more for an account from a network: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1000)); err != nil {
		t.Errorf("the user, from another network: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, "other@example.org", secret, within("2001:db8::", 1000)); err != nil {
		t.Errorf("another account: %v", err)
	}
	f.pass(10 * time.Second)
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, within("2001:db8::", 1000)); err != nil {
		t.Errorf("after waiting: %v", err)
	}

	f.pass(time.Hour)
	for i := range emailBurst { // from everywhere, so that no network reaches its limit
		if _, _, err := f.accounts.SignIn(ctx, somebody, "wrong", where(i)); !errors.Is(err, ErrCredentials) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1000)); !errors.As(err, &soon) || soon.Wait != time.Second {
		t.Errorf("one attempt more for an account: %v", err)
	}
	if _, _, err := f.accounts.SignIn(ctx, "other@example.org", secret, where(1000)); err != nil {
		t.Errorf("another account: %v", err)
	}
	f.pass(soon.Wait)
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(1000)); err != nil {
		t.Errorf("after waiting: %v", err)
	}

	for i := range addressBurst { // for different accounts, so that none reaches its limit
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
		t.Errorf("the session has ended before the password was set: %v", err)
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

// A disabled account's password stays, although there is a token that sets it.
func TestResetOfADisabledAccount(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	f.register(somebody, secret)
	token, _, err := f.accounts.Reset(ctx, somebody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Disable(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if _, session, err := f.accounts.SetPassword(ctx, token, "another horse", where(1)); err == nil {
		t.Errorf("the password is set, and the session %q began", session)
	}
	if _, err := f.accounts.Enable(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.accounts.SignIn(ctx, somebody, secret, where(2)); err != nil {
		t.Errorf("the password from before, once the account is enabled: %v", err)
	}
}

// A password is rehashed with new parameters at the next sign-in.
func TestPasswordsAreRehashed(t *testing.T) {
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
