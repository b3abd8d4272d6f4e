package account

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"ashlar/account/passkey"
	"ashlar/account/passkey/passkeytest"
)

// Readers of a shared store learn of passkeys, their removal, and their blocking.
func TestPasskeysAreShared(t *testing.T) {
	f := newFixture(t, Config{Shared: true})
	a := withPassword(f)
	ctx := t.Context()
	other := openAccounts(t, f.store, f.config)
	keys, err := OpenKeyring(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	d, recovery, _ := f.newPasskey(a.ID, "Key")
	arrive := func() error {
		if err := keys.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		_, _, err := other.SignInWithPasskey(ctx, f.answer(d), netip.Addr{})
		return err
	}
	if err := arrive(); err != nil {
		t.Errorf("at another reader: %v", err)
	}
	refresh(t, f.accounts)
	if _, err := f.accounts.RemovePasskey(ctx, a.ID, d.ID, Reproof{Password: factorPassword, Proof: Proof{Code: recovery[0]}}); err != nil {
		t.Fatal(err)
	}
	if err := arrive(); !errors.Is(err, ErrPasskey) {
		t.Errorf("removed, at another reader: %v", err)
	}
}

// A process that does not know yet that a passkey was removed records a use of another one,
// without undoing the removal.
func TestRemovalOfPasskeyHolds(t *testing.T) {
	f := newFixture(t, Config{Shared: true})
	a := withPassword(f)
	ctx := t.Context()
	other := openAccounts(t, f.store, f.config)
	kept, recovery, _ := f.newPasskey(a.ID, "Key")
	for i := range 8 { // because the order of the two revisions is random
		f.pass(time.Hour)
		lost, _, _ := f.newPasskey(a.ID, fmt.Sprint("Lost ", i))
		refresh(t, other)
		if _, err := f.accounts.RemovePasskey(ctx, a.ID, lost.ID, Reproof{Password: factorPassword, Proof: Proof{Code: recovery[i]}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.SignInWithPasskey(ctx, f.answer(kept), netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		for _, process := range []*Accounts{f.accounts, other} {
			refresh(t, process)
			if _, _, err := process.SignInWithPasskey(ctx, f.answer(lost), netip.Addr{}); !errors.Is(err, ErrPasskey) {
				t.Errorf("a passkey that was removed: %v", err)
			}
		}
	}
}

// The same answer sent to two processes at once is accepted by one of them. The other does not take it for that of a
// copy.
func TestAnswerSentToTwoProcesses(t *testing.T) {
	for _, count := range []uint32{0, 1} {
		f := newFixture(t, Config{Shared: true})
		a := withPassword(f)
		d := passkeytest.New(f, testSite().Origin)
		d.Count = count
		f.addPasskey(d, a.ID, "Key")
		other := openAccounts(t, f.store, f.config)
		answer := f.answer(d)
		if _, _, err := f.accounts.SignInWithPasskey(t.Context(), answer, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.SignInWithPasskey(t.Context(), answer, netip.Addr{}); !errors.Is(err, passkey.ErrLate) {
			t.Errorf("counting from %d, at the other process: %v", count, err)
		}
		if all, err := other.PasskeysOf(a.ID); err != nil || len(all) != 1 || !all[0].Copied.IsZero() {
			t.Errorf("counting from %d: %+v, %v", count, all, err)
		}
		if _, _, err := other.SignInWithPasskey(t.Context(), f.answer(d), netip.Addr{}); err != nil {
			t.Errorf("counting from %d, another answer at the other process: %v", count, err)
		}
	}
}
