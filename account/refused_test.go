package account

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/retry"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// refusing is a store that refuses writes while full is set.
type refusing struct {
	kv.Store
	full atomic.Bool
}

func (r *refusing) Write(ctx context.Context, b kv.Batch) error {
	if r.full.Load() {
		return errors.Join(kv.ErrFull, syscall.ENOSPC)
	}
	return r.Store.Write(ctx, b)
}

// openRefusing opens the fixture's store again, below a store that can refuse writes.
func (f *fixture) openRefusing() *refusing {
	f.Helper()
	refuses := &refusing{Store: f.store}
	f.config.Retry = retry.New("store restrictions", slog.New(slog.DiscardHandler))
	f.accounts = openAccounts(f, refuses, f.config)
	var err error
	if f.keys, err = OpenKeyring(f.Context(), f.accounts); err != nil {
		f.Fatal(err)
	}
	return refuses
}

// Restrictions take effect while the store refuses writes, and are durable once it accepts
// them again. Everything else fails.
func TestRestrictionsDoNotWaitForTheDisk(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	refuses := f.openRefusing()
	ctx := t.Context()
	leaked, limited, kept := f.key(f.keys, NewKey{Name: "leaked"}), f.key(f.keys, NewKey{Name: "limited"}), f.key(f.keys, NewKey{Name: "kept"})
	a, session := f.register(somebody, secret)
	owned := f.key(f.keys.Of(a.ID), NewKey{Name: "owned"})
	demoted, _ := f.register("operator@example.org", secret)
	if _, err := f.accounts.SetRole(ctx, demoted.Email, RoleOperator); err != nil {
		t.Fatal(err)
	}
	token, invitation, err := f.accounts.Invite(ctx, NewInvitation{})
	if err != nil {
		t.Fatal(err)
	}
	refuses.full.Store(true)
	for what, grant := range map[string]func() error{
		"create a key": func() error { _, err := f.keys.Create(ctx, NewKey{}); return err },
		"rotate":       func() error { _, err := f.keys.Rotate(ctx, "kept", 0); return err },
		"unguard":      func() error { _, err := f.keys.Unguard(ctx, "kept"); return err },
		"promote":      func() error { _, err := f.accounts.SetRole(ctx, somebody, RoleOperator); return err },
		"invite":       func() error { _, _, err := f.accounts.Invite(ctx, NewInvitation{}); return err },
	} {
		if err := grant(); !errors.Is(err, kv.ErrFull) {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	if k, err := f.keys.Revoke(ctx, "leaked"); err != nil || !k.Unsaved || f.checks(leaked.APIKey) {
		t.Errorf("revoked on a full disk: %+v, %v; accepted: %t", k, err, f.checks(leaked.APIKey))
	}
	if k, err := f.keys.Restrict(ctx, "limited", Rules{Networks: []string{"demo"}}); err != nil || !k.Unsaved {
		t.Errorf("restricted on a full disk: %+v, %v", k, err)
	}
	if k, _ := f.keys.Check(limited.APIKey); k.Rules.AllowsNetwork("other") {
		t.Error("the rules of a key are not in effect")
	}
	if a, err := f.accounts.Disable(ctx, somebody); err != nil || !a.Unsaved || f.checks(owned.APIKey) {
		t.Errorf("disabled on a full disk: %+v, %v; its key is accepted: %t", a, err, f.checks(owned.APIKey))
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("a session of a disabled account: %v", err)
	}
	if a, err := f.accounts.SetRole(ctx, demoted.Email, RoleUser); err != nil || !a.Unsaved || a.Role != RoleUser {
		t.Errorf("demoted on a full disk: %+v, %v", a, err)
	}
	if _, err := f.accounts.Enable(ctx, somebody); !errors.Is(err, kv.ErrFull) {
		t.Errorf("enabled on a full disk: %v", err)
	}
	if i, err := f.accounts.Withdraw(ctx, invitation.ID); err != nil || !i.Unsaved {
		t.Errorf("withdrawn on a full disk: %+v, %v", i, err)
	}
	want := []string{"account " + a.ID.String(), "account " + demoted.ID.String(), "invitation " + invitation.ID, "key " + leaked.Key.ID.String(), "key " + limited.Key.ID.String()}
	slices.Sort(want)
	if u := f.accounts.Unsaved(); u == nil || !slices.Equal(u.Names, want) || u.Restrictions != len(want) {
		t.Fatalf("unsaved: %+v, expected %q", u, want)
	}

	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.accounts.Run(run) }()
	f.await(func() bool { return f.accounts.Unsaved().Why != "" })
	refuses.full.Store(false)
	f.await(func() bool { return f.accounts.Unsaved() == nil })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.reopen()
	if f.accepts(leaked.APIKey) || f.accepts(owned.APIKey) || !f.accepts(kept.APIKey) {
		t.Error("opened again, other keys are accepted than before")
	}
	if _, err := f.accounts.Invitation(token); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("opened again, a withdrawn invitation: %v", err)
	}
	if k, _ := f.keys.Check(limited.APIKey); k.Unsaved || k.Rules.AllowsNetwork("other") {
		t.Errorf("opened again, the restricted key is %+v", k)
	}
}

// checks reports whether a key is accepted now.
func (f *fixture) checks(text string) bool {
	_, ok := f.keys.Check(text)
	return ok
}

// await waits until something is so.
func (f *fixture) await(so func() bool) {
	f.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatal("waited in vain")
		}
	}
}

// Without a task that tries again, a restriction that cannot be stored is an error.
func TestRefusedWithoutRetry(t *testing.T) {
	f := newFixture(t, Config{})
	refuses := f.openRefusing()
	f.accounts.rows.again = nil
	f.key(f.keys, NewKey{Name: "leaked"})
	refuses.full.Store(true)
	if _, err := f.keys.Revoke(t.Context(), "leaked"); !errors.Is(err, kv.ErrFull) {
		t.Errorf("revoked: %v", err)
	}
}

// A write that the store refused may be completed later, so the next change has another
// number: a row never changes.
func TestRefusedRevisionsAreNotReused(t *testing.T) {
	f := newFixture(t, Config{})
	refuses := f.openRefusing()
	f.key(f.keys, NewKey{Name: "a"})
	refuses.full.Store(true)
	if _, err := f.keys.Rotate(t.Context(), "a", 0); err == nil {
		t.Fatal("rotated on a full disk")
	}
	refuses.full.Store(false)
	if _, err := f.keys.Revoke(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, k := range f.keys.keys.Load().byFirst {
		if k.number != 2 {
			t.Errorf("revision %d, expected 2", k.number)
		}
	}
}

// The audit log has every restriction that the disk refused, also those that a later change of the
// same thing has replaced.
func TestRefusedRestrictionsAreAudited(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	refuses := f.openRefusing()
	f.register(somebody, secret)
	f.register("other@example.org", secret)
	refuses.full.Store(true)
	for n, restrict := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := f.accounts.Disable(ctx, somebody); return err },
		func(ctx context.Context) error {
			_, err := f.accounts.SetLimits(ctx, somebody, Limits{Keys: 1})
			return err
		},
		func(ctx context.Context) error {
			_, err := f.accounts.SetLimits(ctx, somebody, Limits{Keys: 2})
			return err
		},
		func(ctx context.Context) error { _, err := f.accounts.Disable(ctx, "other@example.org"); return err },
	} {
		if err := restrict(WithActor(t.Context(), Actor{Address: where(n), Via: "dashboard"})); err != nil {
			t.Fatal(err)
		}
	}
	refuses.full.Store(false)
	if _, err := f.accounts.Enable(t.Context(), "other@example.org"); err != nil { // before it is tried again
		t.Fatal(err)
	}
	if err := f.accounts.rows.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := f.accounts.Audit(t.Context(), AuditQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	did := make(map[string]int)
	for _, e := range entries {
		did[e.Did]++
	}
	if want := map[string]int{"create": 2, "disable": 2, "limit": 2, "enable": 1}; !maps.Equal(did, want) {
		t.Errorf("the log has %v, expected %v", did, want)
	}
}

// hanging stands for a store whose writes wait until they are canceled, as on Cassandra while too few nodes answer. It
// answers at once what such a store does after the wait, and counts the writes that nothing would have canceled.
type hanging struct {
	kv.Store
	hangs   atomic.Bool
	endless atomic.Int64 // writes without a deadline
}

func (h *hanging) Write(ctx context.Context, b kv.Batch) error {
	if !h.hangs.Load() {
		return h.Store.Write(ctx, b)
	}
	if _, ok := ctx.Deadline(); !ok {
		h.endless.Add(1)
	}
	return kv.ErrUnavailable
}

// A restriction that too few nodes store does not hold up other changes without end. It is stored once they answer.
func TestRestrictionsDoNotWaitForNodes(t *testing.T) {
	store := &hanging{Store: openStore(t, vfs.NewMem())}
	accounts := openAccounts(t, store, Config{Shared: true, Retry: retry.New("store restrictions", slog.New(slog.DiscardHandler))})
	keys, err := OpenKeyring(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := accounts.Create(t.Context(), NewAccount{Email: somebody}); err != nil {
		t.Fatal(err)
	}
	issued, err := keys.Create(t.Context(), NewKey{Name: "leaked"})
	if err != nil {
		t.Fatal(err)
	}
	store.hangs.Store(true)
	if a, err := accounts.Disable(t.Context(), somebody); err != nil || !a.Unsaved {
		t.Errorf("disable: %+v, %v", a, err)
	}
	if k, err := keys.Revoke(t.Context(), "leaked"); err != nil || !k.Unsaved {
		t.Errorf("revoke: %+v, %v", k, err)
	}
	// Neither do other changes, nor a command, which does not try again.
	if _, err := keys.Create(t.Context(), NewKey{}); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("create a key: %v", err)
	}
	if _, err := openShared(t, store).accounts.Disable(t.Context(), somebody); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("disable by a command: %v", err)
	}
	if n := store.endless.Load(); n > 0 {
		t.Errorf("%d writes have no deadline", n)
	}
	store.hangs.Store(false)
	if err := accounts.rows.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	there := openShared(t, store)
	if a, err := there.accounts.Find(somebody); err != nil || a.Enabled() || accounts.Unsaved() != nil {
		t.Errorf("stored %+v, %v; unsaved %v", a, err, accounts.Unsaved())
	}
	if _, ok := there.Check(issued.APIKey); ok {
		t.Error("the revoked key is valid elsewhere")
	}
}
