package account

import (
	"errors"
	"log/slog"
	"testing"

	"ashlar/kv/kvtest"
	"ashlar/retry"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A change of a shared store that failed although it may have been applied, in whole or in part, is soon the same
// everywhere: it is made or it is not.
func TestDoubtfulChange(t *testing.T) {
	for how := range kvtest.Outcomes {
		t.Run(how.String(), func(t *testing.T) {
			store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
			here := openShared(t, store)
			issued, err := here.Create(t.Context(), NewKey{Name: "guarded", Guarded: true})
			if err != nil {
				t.Fatal(err)
			}
			there := openShared(t, store.Store)
			refresh := func() {
				for _, r := range []*Keyring{here, there, here} { // a process that announces a change reads it the next time
					if err := r.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			refresh()
			store.Fail, store.How = 1, how
			if _, err := here.Unguard(t.Context(), "guarded"); !errors.Is(err, kvtest.ErrDoubtful) {
				t.Fatal(err)
			}
			refresh()
			after, ok := openShared(t, store.Store).Check(issued.APIKey)
			if !ok {
				t.Fatal("the key is not valid")
			}
			for where, r := range map[string]*Keyring{"here": here, "there": there} {
				if k, ok := r.Check(issued.APIKey); !ok || k.Accepts("") != after.Accepts("") {
					t.Errorf("%s: the key is valid: %t, without a password: %t; a new process says %t", where, ok, k.Accepts(""), after.Accepts(""))
				}
			}
			// A further change begins with what is stored.
			if _, err := here.Guard(t.Context(), "guarded"); err != nil {
				t.Fatal(err)
			}
			refresh()
			if k, ok := there.Check(issued.APIKey); !ok || k.Accepts("") {
				t.Errorf("guarded again: the key is valid: %t, without a password: %t", ok, k.Accepts(""))
			}
		})
	}
}

// A user who registers again, because the first time failed, gets an account or is told that there is one. Either can be
// used: no second one has the address.
func TestDoubtfulRegistration(t *testing.T) {
	for how := range kvtest.Outcomes {
		t.Run(how.String(), func(t *testing.T) {
			store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
			here := openAccounts(t, store, Config{Shared: true, Registration: RegistrationOpen})
			who := Registrant{Email: somebody, Password: secret, Address: where(1)}
			store.Fail, store.How = 1, how
			if _, _, err := here.Register(t.Context(), who); !errors.Is(err, kvtest.ErrDoubtful) {
				t.Fatal(err)
			}
			_, _, err := here.Register(t.Context(), who)
			if taken := (*Invalid)(nil); err != nil && (!errors.As(err, &taken) || taken.Field != FieldEmail) {
				t.Fatal(err)
			}
			for name, a := range map[string]*Accounts{"here": here, "a new process": openAccounts(t, store.Store, Config{Shared: true})} {
				if _, _, err := a.SignIn(t.Context(), somebody, secret, where(2)); err != nil {
					t.Errorf("%s: sign in: %v", name, err)
				}
				if problems := a.rows.unreadableTexts(); len(problems) > 0 {
					t.Errorf("%s: %v", name, problems)
				}
			}
		})
	}
}

// A restriction that is stored when it is tried again is in the audit log once, even if the first attempt was applied.
func TestDoubtfulRestriction(t *testing.T) {
	for how := range kvtest.Outcomes {
		t.Run(how.String(), func(t *testing.T) {
			store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
			accounts := openAccounts(t, store, Config{Shared: true, Retry: retry.New("store restrictions", slog.New(slog.DiscardHandler))})
			keys, err := OpenKeyring(t.Context(), accounts)
			if err != nil {
				t.Fatal(err)
			}
			issued, err := keys.Create(t.Context(), NewKey{Name: "leaked"})
			if err != nil {
				t.Fatal(err)
			}
			store.Fail, store.How = 1, how
			if k, err := keys.Revoke(t.Context(), "leaked"); err != nil || !k.Unsaved {
				t.Fatalf("revoke: %+v, %v", k, err)
			}
			if err := accounts.rows.save(t.Context()); err != nil {
				t.Fatal(err)
			}
			there := openShared(t, store.Store)
			if _, ok := there.Check(issued.APIKey); ok {
				t.Error("the revoked key is valid elsewhere")
			}
			entries, err := there.accounts.Audit(t.Context(), AuditQuery{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			revoked := 0
			for _, e := range entries {
				if e.Did == "revoke" {
					revoked++
				}
			}
			if revoked != 1 {
				t.Errorf("%d entries of the audit log say that it was revoked", revoked)
			}
		})
	}
}
