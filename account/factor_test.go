package account

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"ashlar/account/totp"
)

const factorPassword = "correct horse battery"

// withFactor returns an account with a second factor.
func withFactor(f *fixture) (a Account, secret totp.Secret, recovery []string) {
	f.Helper()
	token, a, err := f.accounts.Create(f.Context(), NewAccount{Email: "a@example.org"})
	if err != nil {
		f.Fatal(err)
	}
	_, before, err := f.accounts.SetPassword(f.Context(), token, factorPassword, netip.Addr{})
	if err != nil {
		f.Fatal(err)
	}
	secret = totp.NewSecret()
	for _, wrong := range []struct{ code, password string }{{"000000", factorPassword}, {f.code(secret), "not the password"}} {
		if _, _, err := f.accounts.Enrol(f.Context(), a.ID, secret, wrong.code, Reproof{Password: wrong.password}); err == nil {
			f.Errorf("added with %q and %q", wrong.code, wrong.password)
		}
	}
	recovery, session, err := f.accounts.Enrol(f.Context(), a.ID, secret, f.code(secret), Reproof{Password: factorPassword})
	if err != nil || len(recovery) != recoveryCodes {
		f.Fatalf("%d recovery codes, %v", len(recovery), err)
	}
	if _, err := f.accounts.Resume(before); !errors.Is(err, ErrSession) {
		f.Errorf("a session from before: %v", err)
	}
	if _, err := f.accounts.Resume(session); err != nil {
		f.Errorf("the new session: %v", err)
	}
	f.pass(time.Minute)
	return a, secret, recovery
}

// code returns the current code of a secret.
func (f *fixture) code(secret totp.Secret) string {
	code, err := secret.Code(totp.Step(f.accounts.now()))
	if err != nil {
		f.Fatal(err)
	}
	return code
}

// pending proves the first factor.
func (f *fixture) pending() Pending {
	f.Helper()
	_, session, err := f.accounts.SignIn(f.Context(), "a@example.org", factorPassword, netip.Addr{})
	var needed *CodeNeeded
	if !errors.As(err, &needed) || session != "" {
		f.Fatalf("signing in: session %q, %v", session, err)
	}
	if _, err := f.accounts.Resume(Session(needed.Pending)); !errors.Is(err, ErrSession) {
		f.Errorf("a pending sign-in is a session: %v", err)
	}
	return needed.Pending
}

func (f *fixture) confirm(p Pending, code string) error {
	_, session, err := f.accounts.Confirm(f.Context(), p, Proof{Code: code}, netip.Addr{})
	if err == nil {
		_, err = f.accounts.Resume(session)
	}
	return err
}

// Signing in needs a code, which works once, also after a restart; a recovery code does too.
func TestSecondFactor(t *testing.T) {
	f := newFixture(t, Config{})
	a, secret, recovery := withFactor(f)
	f.reopen()
	p, code := f.pending(), f.code(secret)
	if err := f.confirm(p, "000000"); !errors.Is(err, ErrCode) {
		t.Errorf("a wrong code: %v", err)
	}
	if err := f.confirm(p, code); err != nil {
		t.Errorf("the code: %v", err)
	}
	f.reopen()
	if err := f.confirm(f.pending(), code); !errors.Is(err, ErrCode) {
		t.Errorf("the code again: %v", err)
	}
	if err := f.confirm(f.pending(), recovery[3]); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
	if err := f.confirm(f.pending(), recovery[3]); !errors.Is(err, ErrCode) {
		t.Errorf("the recovery code again: %v", err)
	}
	if now, _ := f.accounts.Find(a.ID.String()); now.RecoveryCodes != recoveryCodes-1 {
		t.Errorf("%d recovery codes are left", now.RecoveryCodes)
	}
	p = f.pending()
	f.pass(pendingTime)
	if err := f.confirm(p, f.code(secret)); !errors.Is(err, ErrSession) {
		t.Errorf("after too long: %v", err)
	}
	p = f.pending()
	other, _, _ := cutLast(string(p), ".")
	if _, _, err := f.accounts.EndSessions(t.Context(), Session(other)); err != nil {
		t.Fatal(err)
	}
	if err := f.confirm(p, f.code(secret)); !errors.Is(err, ErrSession) {
		t.Errorf("after the sessions were ended: %v", err)
	}
	for _, p := range []Pending{"", "x", Pending(a.ID.String()), Pending(a.ID.String() + ".1." + "99999999999x")} {
		if err := f.confirm(p, f.code(secret)); !errors.Is(err, ErrSession) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// Nobody can try many codes; the user can still sign in with a recovery code.
func TestCodesAreLimited(t *testing.T) {
	f := newFixture(t, Config{})
	_, secret, recovery := withFactor(f)
	p := f.pending()
	var soon *TooSoon
	tried := 0
	for ; tried < 100 && !errors.As(f.confirm(p, "000000"), &soon); tried++ {
		f.pass(15 * time.Second) // so that only the limit for codes applies
		p = f.pending()
	}
	if tried > codesBurst+2 || soon == nil || soon.What != "codes" {
		t.Errorf("%d codes were tried, %v", tried, soon)
	}
	if err := f.confirm(p, f.code(secret)); !errors.As(err, &soon) {
		t.Errorf("the right code: %v", err)
	}
	if err := f.confirm(p, recovery[0]); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
}

// A link to set a password does not replace the second factor.
func TestResetNeedsTheSecondFactor(t *testing.T) {
	f := newFixture(t, Config{})
	a, secret, _ := withFactor(f)
	token, _, err := f.accounts.Reset(t.Context(), a.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	_, session, err := f.accounts.SetPassword(t.Context(), token, "another good phrase", netip.Addr{})
	var needed *CodeNeeded
	if !errors.As(err, &needed) || session != "" {
		t.Fatalf("session %q, %v", session, err)
	}
	if err := f.confirm(needed.Pending, f.code(secret)); err != nil {
		t.Error(err)
	}
}

// Removing it, and renewing the recovery codes, need the password and a code. An operator needs
// neither, and ends all sessions.
func TestRemoveSecondFactor(t *testing.T) {
	f := newFixture(t, Config{})
	a, secret, recovery := withFactor(f)
	for _, wrong := range []struct{ code, password string }{{"000000", factorPassword}, {f.code(secret), "not the password"}, {"", ""}} {
		if _, err := f.accounts.Unenrol(t.Context(), a.ID, Reproof{Password: wrong.password, Proof: Proof{Code: wrong.code}}); err == nil {
			t.Errorf("removed with %q and %q", wrong.code, wrong.password)
		}
		if _, err := f.accounts.RenewRecovery(t.Context(), a.ID, Reproof{Password: wrong.password, Proof: Proof{Code: wrong.code}}); err == nil {
			t.Errorf("renewed with %q and %q", wrong.code, wrong.password)
		}
	}
	f.pass(10 * time.Minute)
	renewed, err := f.accounts.RenewRecovery(t.Context(), a.ID, Reproof{Password: factorPassword, Proof: Proof{Code: f.code(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.confirm(f.pending(), recovery[0]); !errors.Is(err, ErrCode) {
		t.Errorf("an old recovery code: %v", err)
	}
	if _, err := f.accounts.Unenrol(t.Context(), a.ID, Reproof{Password: factorPassword, Proof: Proof{Code: renewed[0]}}); err != nil {
		t.Fatal(err)
	}
	_, session, err := f.accounts.SignIn(t.Context(), "a@example.org", factorPassword, netip.Addr{})
	if err != nil {
		t.Errorf("without a second factor: %v", err)
	}
	f.pass(10 * time.Minute)
	if _, err := f.accounts.Resume(session); err != nil {
		t.Fatal(err)
	}
	_, enrolled, err := f.accounts.Enrol(t.Context(), a.ID, secret, f.code(secret), Reproof{Password: factorPassword})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("another session, after a factor was added: %v", err)
	}
	if err := f.confirm(f.pending(), f.code(secret)); !errors.Is(err, ErrCode) {
		t.Errorf("the code with which the factor was added: %v", err)
	}
	f.pass(time.Second) // entries of one millisecond are in no order
	if now, err := f.accounts.ResetFactor(t.Context(), "a@example.org"); err != nil || !now.SecondFactor.IsZero() || now.RecoveryCodes != 0 {
		t.Errorf("reset: %+v, %v", now, err)
	}
	if _, err := f.accounts.Resume(enrolled); !errors.Is(err, ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	f.reopen()
	if _, _, err := f.accounts.SignIn(t.Context(), "a@example.org", factorPassword, netip.Addr{}); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	entries, err := f.accounts.Audit(t.Context(), AuditQuery{Account: a.ID, Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Did != "reset the second factor of" {
		t.Errorf("audit %+v, %v", entries, err)
	}
}
