package account

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
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
