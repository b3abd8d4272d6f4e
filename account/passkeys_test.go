package account

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"ashlar/account/passkey"
	"ashlar/account/passkey/passkeytest"
)

// testSite is the site of passkeys in tests.
func testSite() passkey.Site {
	return passkey.Site{Origin: "https://rpc.example.org", Host: "rpc.example.org"}
}

// withPassword returns an account with factorPassword.
func withPassword(f *fixture) Account {
	f.Helper()
	token, a, err := f.accounts.Create(f.Context(), NewAccount{Email: "a@example.org"})
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := f.accounts.SetPassword(f.Context(), token, factorPassword, netip.Addr{}); err != nil {
		f.Fatal(err)
	}
	return a
}

// newPasskey registers a passkey on a new device.
func (f *fixture) newPasskey(id ID, name string) (d *passkeytest.Device, recovery []string, session Session) {
	f.Helper()
	d = passkeytest.New(f, testSite().Origin)
	recovery, session = f.addPasskey(d, id, name)
	return d, recovery, session
}

// addPasskey registers the passkey of a device.
func (f *fixture) addPasskey(d *passkeytest.Device, id ID, name string) (recovery []string, session Session) {
	f.Helper()
	c := passkey.Begin(testSite(), f.Now())
	options, err := c.Creation("Service", passkey.User{ID: id[:], Name: "a@example.org"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	made, err := c.Registered(d.Create(options), f.Now())
	if err != nil {
		f.Fatal(err)
	}
	if recovery, session, err = f.accounts.AddPasskey(f.Context(), id, name, testSite().Host, made); err != nil {
		f.Fatal(err)
	}
	return recovery, session
}

// answer uses the passkey of a device.
func (f *fixture) answer(d *passkeytest.Device) *passkey.Answer {
	f.Helper()
	c := passkey.Begin(testSite(), f.Now())
	options, err := c.Any()
	if err != nil {
		f.Fatal(err)
	}
	answer, err := c.Answered(d.Get(options), f.Now())
	if err != nil {
		f.Fatal(err)
	}
	return answer
}

func (f *fixture) arriveWith(d *passkeytest.Device) error {
	f.Helper()
	_, session, err := f.accounts.SignInWithPasskey(f.Context(), f.answer(d), netip.Addr{})
	if err == nil {
		_, err = f.accounts.Resume(session)
	}
	return err
}

// A passkey that verifies the user replaces the password and its second step, also after a
// restart. From the first one on a password is not enough.
func TestSignInWithPasskey(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	_, before, err := f.accounts.SignIn(t.Context(), "a@example.org", factorPassword, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	d, recovery, session := f.newPasskey(a.ID, "Laptop")
	if len(recovery) != recoveryCodes {
		t.Errorf("%d recovery codes", len(recovery))
	}
	if _, err := f.accounts.Resume(before); !errors.Is(err, ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	if _, err := f.accounts.Resume(session); err != nil {
		t.Errorf("the new session: %v", err)
	}
	f.reopen()
	if err := f.arriveWith(d); err != nil {
		t.Errorf("the passkey: %v", err)
	}
	if err := f.confirm(f.pending(), recovery[0]); err != nil {
		t.Errorf("password and recovery code: %v", err)
	}
	answer := f.answer(d)
	if _, _, err := f.accounts.Confirm(t.Context(), f.pending(), Proof{Passkey: answer}, netip.Addr{}); err != nil {
		t.Errorf("password and passkey: %v", err)
	}
	if _, again, _ := f.newPasskey(a.ID, "Phone"); again != nil {
		t.Error("the second passkey comes with recovery codes")
	}
	all, err := f.accounts.PasskeysOf(a.ID)
	if err != nil || len(all) != 2 || all[0].Name != "Laptop" || !all[0].Used.Equal(f.Now()) || !all[0].Alone || all[1].Name != "Phone" || !all[1].Used.IsZero() {
		t.Errorf("passkeys %+v, %v", all, err)
	}
	entries, err := f.accounts.Audit(t.Context(), AuditQuery{Account: a.ID, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	did := make(map[string]int)
	for _, e := range entries {
		did[e.Did]++
	}
	if did["add a passkey to"] != 2 || did["sign in to"] != 3 {
		t.Errorf("the audit log has %v", did)
	}
}

// A passkey that does not verify the user is a second factor only.
func TestPasskeyWithoutVerification(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	d, _, _ := f.newPasskey(a.ID, "Key")
	d.Flags = passkeytest.Present
	if err := f.arriveWith(d); !errors.Is(err, ErrUnverifiedUser) {
		t.Errorf("alone: %v", err)
	}
	if _, _, err := f.accounts.Confirm(t.Context(), f.pending(), Proof{Passkey: f.answer(d)}, netip.Addr{}); err != nil {
		t.Errorf("after the password: %v", err)
	}
}

// Passkeys that were copied, removed, or are another's are refused.
func TestRefusedPasskeys(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	d, recovery, _ := f.newPasskey(a.ID, "Key")
	stranger := passkeytest.New(t, testSite().Origin)
	for name, k := range map[string]struct{ id, user []byte }{
		"an unknown one":             {stranger.ID, a.ID[:]},
		"another key, the known ID":  {d.ID, a.ID[:]},
		"an unknown user":            {d.ID, make([]byte, 8)},
		"no user":                    {d.ID, nil},
		"a user of another length":   {d.ID, make([]byte, 64)},
		"an unknown one of nobody":   {stranger.ID, nil},
		"an ID that is a part of it": {d.ID[:8], a.ID[:]},
	} {
		stranger.ID, stranger.User = k.id, k.user
		if err := f.arriveWith(stranger); !errors.Is(err, ErrPasskey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.pass(time.Hour)
	if err := f.arriveWith(d); err != nil {
		t.Fatal(err)
	}
	answer := f.answer(d)
	answer.Host = "other.example.org"
	if _, _, err := f.accounts.SignInWithPasskey(t.Context(), answer, netip.Addr{}); !errors.Is(err, ErrPasskey) {
		t.Errorf("on another host: %v", err)
	}
	clone := *d
	if err := f.arriveWith(d); err != nil {
		t.Fatal(err)
	}
	if err := f.arriveWith(&clone); !errors.Is(err, ErrCopied) {
		t.Errorf("a copy: %v", err)
	}
	f.reopen()
	if err := f.arriveWith(d); !errors.Is(err, ErrCopied) {
		t.Errorf("the original after the copy: %v", err)
	}
	if all, err := f.accounts.PasskeysOf(a.ID); err != nil || len(all) != 1 || !all[0].Copied.Equal(f.Now()) {
		t.Errorf("passkeys %+v, %v", all, err)
	}
	by := Reproof{Password: factorPassword, Proof: Proof{Code: recovery[0]}}
	if now, err := f.accounts.RemovePasskey(t.Context(), a.ID, d.ID, by); err != nil || !now.SecondFactor.IsZero() || now.Passkeys != 0 {
		t.Errorf("removed: %+v, %v", now, err)
	}
	if err := f.arriveWith(d); !errors.Is(err, ErrPasskey) {
		t.Errorf("a removed one: %v", err)
	}
	if _, _, err := f.accounts.SignIn(t.Context(), "a@example.org", factorPassword, netip.Addr{}); err != nil {
		t.Errorf("the password alone, without passkeys: %v", err)
	}
}

// The same answer sent twice, by two requests that began with the same session, is accepted once. It is not taken for
// that of a copy, whether or not the authenticator counts.
func TestAnswerSentTwice(t *testing.T) {
	for _, count := range []uint32{0, 1} {
		f := newFixture(t, Config{})
		a := withPassword(f)
		d := passkeytest.New(f, testSite().Origin)
		d.Count = count
		recovery, _ := f.addPasskey(d, a.ID, "Key")
		answer := f.answer(d)
		for i, want := range []error{nil, passkey.ErrLate, passkey.ErrLate} {
			if _, _, err := f.accounts.SignInWithPasskey(t.Context(), answer, netip.Addr{}); !errors.Is(err, want) {
				t.Errorf("counting from %d, sign-in %d: %v, expected %v", count, i, err, want)
			}
		}
		by := Reproof{Password: factorPassword, Proof: Proof{Passkey: f.answer(d)}}
		if codes, err := f.accounts.RenewRecovery(t.Context(), a.ID, by); err != nil || len(codes) != len(recovery) {
			t.Errorf("counting from %d: %d recovery codes, %v", count, len(codes), err)
		}
		if _, err := f.accounts.RenewRecovery(t.Context(), a.ID, by); !errors.Is(err, passkey.ErrLate) {
			t.Errorf("counting from %d, the same proof again: %v", count, err)
		}
		f.pass(passkey.Time)
		if err := f.arriveWith(d); err != nil {
			t.Errorf("counting from %d, another answer: %v", count, err)
		}
		if h, err := f.accounts.holder(a.ID); err != nil || len(h.load().factor.Answered) != 1 {
			t.Errorf("counting from %d: the challenges %+v are kept, %v, expected that of the last 5 minutes", count, h.load().factor.Answered, err)
		}
	}
}

// A disabled account cannot be entered, and reveals that only to its passkey.
func TestPasskeyOfDisabledAccount(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	d, _, _ := f.newPasskey(a.ID, "Key")
	if _, err := f.accounts.Disable(t.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	if err := f.arriveWith(d); !errors.Is(err, ErrDisabled) {
		t.Errorf("its passkey: %v", err)
	}
	stranger := passkeytest.New(t, testSite().Origin)
	stranger.User = a.ID[:]
	if err := f.arriveWith(stranger); !errors.Is(err, ErrPasskey) {
		t.Errorf("another: %v", err)
	}
}

// Adding and removing factors needs those that the account has. The app and passkeys are
// independent of each other.
func TestFactorsProtectEachOther(t *testing.T) {
	f := newFixture(t, Config{})
	a, secret, recovery := withFactor(f)
	ctx := t.Context()
	if err := f.accounts.Reprove(ctx, a.ID, Reproof{Password: factorPassword}); !errors.Is(err, ErrCode) {
		t.Errorf("without a code: %v", err)
	}
	if err := f.accounts.Reprove(ctx, a.ID, Reproof{Password: "wrong wrong", Proof: Proof{Code: f.code(secret)}}); !errors.Is(err, ErrCredentials) {
		t.Errorf("with a wrong password: %v", err)
	}
	if err := f.accounts.Reprove(ctx, a.ID, Reproof{Password: factorPassword, Proof: Proof{Code: f.code(secret)}}); err != nil {
		t.Errorf("with both: %v", err)
	}
	d, _, _ := f.newPasskey(a.ID, "Key")
	now, err := f.accounts.Unenrol(ctx, a.ID, Reproof{Password: factorPassword, Proof: Proof{Passkey: f.answer(d)}})
	if err != nil || now.App || now.Passkeys != 1 || now.SecondFactor.IsZero() || now.RecoveryCodes != recoveryCodes {
		t.Errorf("without the app: %+v, %v", now, err)
	}
	f.pass(time.Minute)
	if err := f.confirm(f.pending(), f.code(secret)); !errors.Is(err, ErrCode) {
		t.Errorf("a code of the app that was removed: %v", err)
	}
	if _, _, err := f.accounts.Enrol(ctx, a.ID, secret, f.code(secret), Reproof{Password: factorPassword}); !errors.Is(err, ErrCode) {
		t.Errorf("the app again, without the passkey: %v", err)
	}
	again, _, err := f.accounts.Enrol(ctx, a.ID, secret, f.code(secret), Reproof{Password: factorPassword, Proof: Proof{Passkey: f.answer(d)}})
	if err != nil || again != nil {
		t.Errorf("the app again: %d recovery codes, %v", len(again), err)
	}
	if err := f.confirm(f.pending(), recovery[0]); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
	if now, err := f.accounts.ResetFactor(ctx, a.ID.String()); err != nil || now.App || now.Passkeys != 0 || !now.SecondFactor.IsZero() {
		t.Errorf("reset: %+v, %v", now, err)
	}
	if err := f.arriveWith(d); !errors.Is(err, ErrPasskey) {
		t.Errorf("the passkey after the reset: %v", err)
	}
}

// An account has a bounded number of passkeys, and each once, with a name.
func TestPasskeysAreBounded(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	var d *passkeytest.Device
	for range maxPasskeys {
		d, _, _ = f.newPasskey(a.ID, "Key")
	}
	all, err := f.accounts.PasskeysOf(a.ID)
	if err != nil || len(all) != maxPasskeys {
		t.Fatalf("%d passkeys, %v", len(all), err)
	}
	made := passkey.Credential{ID: []byte("another"), Key: f.accounts.people[a.ID].load().factor.Passkeys[0].Key}
	if _, _, err := f.accounts.AddPasskey(t.Context(), a.ID, "Key", testSite().Host, made); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	var wrong *Invalid
	if _, _, err := f.accounts.AddPasskey(t.Context(), a.ID, "", testSite().Host, made); !errors.As(err, &wrong) {
		t.Errorf("without a name: %v", err)
	}
	if _, err := f.accounts.RemovePasskey(t.Context(), a.ID, all[0].ID, Reproof{Password: factorPassword, Proof: Proof{Passkey: f.answer(d)}}); err != nil {
		t.Fatal(err)
	}
	made.ID = d.ID
	if _, _, err := f.accounts.AddPasskey(t.Context(), a.ID, "Key", testSite().Host, made); !errors.As(err, &wrong) {
		t.Errorf("one that is registered: %v", err)
	}
}

// Attempts with passkeys count like those with passwords, and each use, which is stored, like a
// change.
func TestPasskeyLimits(t *testing.T) {
	f := newFixture(t, Config{})
	a := withPassword(f)
	d, _, _ := f.newPasskey(a.ID, "Key")
	stranger := passkeytest.New(t, testSite().Origin)
	stranger.User = a.ID[:]
	var soon *TooSoon
	for i := range guesserBurst + 1 {
		_, _, err := f.accounts.SignInWithPasskey(t.Context(), f.answer(stranger), where(1))
		if limited := errors.As(err, &soon); limited != (i == guesserBurst) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if _, _, err := f.accounts.SignInWithPasskey(t.Context(), f.answer(d), where(1000)); err != nil {
		t.Errorf("the user, from another network: %v", err)
	}
	uses := 0
	for ; uses < 2*changesBurst; uses++ {
		if _, _, err := f.accounts.SignInWithPasskey(t.Context(), f.answer(d), where(2000+1000*uses)); errors.As(err, &soon) {
			break
		}
	}
	if uses >= changesBurst {
		t.Errorf("%d uses at once", uses)
	}
}
