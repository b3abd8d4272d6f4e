package account

import (
	"context"
	"iter"
	"log/slog"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// meanwhile is a store in which something happens once, just before a table is read.
type meanwhile struct {
	kv.Store
	table *kv.Table
	do    func()
}

func (m *meanwhile) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	if do := m.do; t == m.table && do != nil {
		m.do = nil
		do()
	}
	return m.Store.Walk(ctx, t, from)
}

// refreshed reads what other processes have changed, as a server does every moment.
func refreshed(t *testing.T, r *Keyring) {
	t.Helper()
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An account is created with a key while another process reads: the accounts without it, then the keys with its
// key. The key is accepted once the account is known.
func TestKeyOfAnAccountCreatedMeanwhile(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openShared(t, store)
	reading := &meanwhile{Store: store, table: keyRevisions}
	there := openShared(t, reading)
	create(t, here, "to be read")
	var issued Issued
	reading.do = func() {
		_, owner, err := here.accounts.Create(t.Context(), NewAccount{Email: somebody})
		if err == nil {
			issued, err = here.Of(owner.ID).Create(t.Context(), NewKey{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refreshed(t, there)
	if _, ok := there.Check(issued.APIKey); ok {
		t.Fatal("the key was not created meanwhile")
	}
	refreshed(t, there)
	if _, ok := there.Check(issued.APIKey); !ok {
		t.Error("the key is refused although its account is known")
	}
	if bad := there.accounts.Unreadable(); len(bad) > 0 {
		t.Errorf("disabled: %q", bad)
	}
}

// Another account has an address now, and a change of it reads its newest row before that of the account that had the
// address before. Both accounts work once all is read.
func TestAddressThatIsStillTaken(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	sent := new(outbox)
	config := Config{Shared: true, Mailer: sent}
	here := openAccounts(t, store, config)
	former, next := createWithPassword(t, here, somebody), createWithPassword(t, here, "next@example.org")
	there := openShared(t, store)
	for i, move := range []struct {
		of ID
		to string
	}{{former.ID, "former@example.org"}, {next.ID, somebody}} {
		if err := here.RequestChange(t.Context(), move.of, secret, move.to, where(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := here.ConfirmChange(t.Context(), sent.next(t).Token, where(i)); err != nil {
			t.Fatal(err)
		}
		sent.next(t) // which notifies the old address
	}
	_, _ = there.accounts.SetLimits(t.Context(), next.ID.String(), Limits{Keys: 7}) // which may not be possible yet
	refreshed(t, there)
	if a, err := there.accounts.Find(somebody); err != nil || a.ID != next.ID || !a.Enabled() {
		t.Errorf("the account with the address is %+v, %v", a, err)
	}
	if bad := there.accounts.Unreadable(); len(bad) > 0 {
		t.Errorf("disabled: %q", bad)
	}
}

// counted counts what is logged.
type counted struct {
	slog.Handler
	lines int
}

func (c *counted) Enabled(context.Context, slog.Level) bool { return true }

func (c *counted) Handle(context.Context, slog.Record) error {
	c.lines++
	return nil
}

// What cannot be read is logged once, however often it is read, and is no longer named when another process has
// replaced it by what can be read.
func TestUnreadableElsewhere(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here, there := openShared(t, store), openShared(t, store)
	_, key := create(t, here, "of a newer program")
	_, a, err := here.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	first, invitation := firstOf(here, key.ID), hash{1}
	write := func(b kv.Batch) {
		t.Helper()
		here.accounts.rows.announce(b)
		if err := store.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	b := store.NewBatch()
	b.Put(keyRevisions, first[:], 1<<40, []byte("\x01"+`{"moons":1}`))
	b.Put(accountRevisions, a.ID[:], 1<<40, []byte("\x01"+`{"email":"`+somebody+`","role":"user","created":1,"moons":1}`))
	b.Put(invitationRevisions, invitation[:], 0, []byte("\x01"+`{"role":"user","created":1,"expires":2,"moons":1}`))
	write(b)
	defer slog.SetDefault(slog.Default())
	logged := &counted{Handler: slog.DiscardHandler}
	slog.SetDefault(slog.New(logged))
	for range 3 {
		refreshed(t, there)
		create(t, here, "so that all is read again")
	}
	if bad := there.accounts.Unreadable(); len(bad) != 3 || logged.lines != 3 {
		t.Errorf("disabled %q, in %d lines of the log; expected 3", bad, logged.lines)
	}
	refreshed(t, here)
	if _, err := here.Revoke(t.Context(), key.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := here.accounts.Delete(t.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	b = store.NewBatch()
	b.Put(invitationRevisions, invitation[:], 1, []byte("\x01"+`{"role":"user","created":1,"expires":2}`))
	write(b)
	refreshed(t, there)
	if bad := there.accounts.Unreadable(); len(bad) > 0 {
		t.Errorf("still disabled: %q", bad)
	}
}

// firstOf returns the hash of the first secret of a key.
func firstOf(r *Keyring, id KeyID) hash {
	for first, k := range r.keys.Load().byFirst {
		if k.ID == id {
			return first
		}
	}
	return hash{}
}
